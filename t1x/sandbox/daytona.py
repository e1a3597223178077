"""Cloud sandboxes of Daytona, as a component."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.config.requirements import package, variable, worker
from t1x.sandbox.protocol import Sandbox


class DaytonaSandbox(Sandbox):
    """A cloud sandbox a trial, made for it and deleted explicitly at its end (report, sections 6.1 and 7.4)."""

    image: Annotated[str | None, Role.PLACEMENT] = None
    """Container image of every sandbox; each task's own environment where None."""
    snapshot: Annotated[str | None, Role.PLACEMENT] = None
    """Daytona snapshot that every sandbox starts from, instead of an image."""
    cpu: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """Cores of a sandbox (report, section 7.4: one)."""
    memory: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 2
    """GiB of memory of a sandbox (report, section 7.4: small; no number)."""
    disk: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 10
    """GiB of disk of a sandbox (report, section 6.1)."""
    output_limit: Annotated[int, Field(ge=1)] = 10_000
    """Bytes of one command's output that are kept, half from its beginning, half from its end (Terminus-2's 10,000)."""
    network_block: Annotated[bool, Role.PLACEMENT] = False
    """Whether sandboxes have no network. The report's have one: an agent downloads in section 13."""
    creates_per_second: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 6.0
    """Rate of the token bucket that paces creation, a second (report, section 7.4)."""
    quota_per_minute: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 600
    """Creations a minute that the provider allows (report, section 7.4)."""
    setup_deadline: Annotated[float, Role.SCALE, Field(gt=0)] = 900.0
    """Seconds that creating a sandbox may take; what the report's deadlines of agent (3600) and verifier (900) leave."""
    remote_deadline: Annotated[float, Role.SCALE, Field(gt=0)] = 5400.0
    """Seconds after which a trial is ended, whatever it does, counted from the creation of its sandbox (report, section 7.4)."""
    delete_backstop: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 900.0
    """Seconds beyond `remote_deadline` after which the provider itself stops and deletes a sandbox, running or not, in case its
    deletion was lost (report, section 7.4: what deletes only suspended ones leaks)."""
    label: Annotated[str, Role.PLACEMENT, Field(min_length=1)] = "t1x"
    """Marks the sandboxes of this experiment; those left by an earlier run with the same label are deleted at start and end."""
    api_key_variable: Annotated[str, Role.PLACEMENT] = "DAYTONA_API_KEY"
    """Environment variable that holds the key of the account; the key itself is in no file."""
    api_url: Annotated[str, Role.PLACEMENT] = "https://app.daytona.io/api"
    """Where the provider's interface is."""
    target: Annotated[str | None, Role.PLACEMENT] = None
    """Region; the account's default where None."""

    @model_validator(mode="after")
    def _creation_fits(self) -> Self:
        if self.image is not None and self.snapshot is not None:
            raise ValueError("image and snapshot both say what a sandbox starts from; set one of them")
        if (most := self.creates_per_second * 60 + self.create_burst) > self.quota_per_minute:
            raise ValueError(
                f"creates_per_second ({self.creates_per_second:g}) and create_burst ({self.create_burst}) make up to {most:g} "
                f"sandboxes a minute, but quota_per_minute is {self.quota_per_minute}; lower the rate"
            )
        return self

    def missing(self) -> list[str]:
        key = variable(self.api_key_variable, "the key of your Daytona account")
        return [*package("daytona-sdk", ">=0.168"), *key, *worker(self)]

"""A root and a kind that only the tests of cli/ know."""

import json
from typing import Annotated, Literal

from pydantic import Field, field_validator

from t1x.config import Component, Role, Root
from t1x.config.requirements import Lack, NotHere
from t1x.rollout.streams import stream


class CliPart(Component):
    """A part of a toy."""


class CliWheel(CliPart):
    """Something round, e.g. A of Eq. 20. It turns."""

    spokes: Annotated[int, Role.SCALE, Field(ge=0, lt=100)] = 8
    """Number of
    spokes."""
    sizes: tuple[Annotated[float, Field(gt=0)], ...] = Field(default_factory=lambda: (1.0, 2.0))
    """Sizes in metres."""
    finish: Literal["matt", "gloss"] = "matt"
    """How it shines."""


class CliCart(Root):
    """A toy cart."""

    part: CliPart
    """What it is made of."""
    spare: CliPart = CliWheel(spokes=3)
    """What it carries."""
    label: Annotated[str | None, Role.PLACEMENT] = None
    """What it is called."""

    @field_validator("label")
    @classmethod
    def _fragile(cls, label: str | None) -> str | None:
        if label == "fault":
            stream(object())  # type: ignore[arg-type]  # fails in code of t1x
        if label == "bug":
            json.dumps(object())
        if label == "full":
            raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)\n[more]")
        if label == "absent":
            raise NotHere([Lack("environment variable CLI_TOY (its key)", (("CliCart.part", "CliWheel"),))])
        if label == "large":
            import torch

            torch.empty(2**60)
        return label

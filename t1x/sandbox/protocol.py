"""What a sandbox can do. One sandbox belongs to one trial.

Invariants:
- after `destroy` no process, mount or folder of the sandbox is left, however it ended;
- after `stop` no process of the agent is alive, while its files are still there;
- `run_fresh` never shares a process, an environment variable or a writable mount with what the agent ran,
  except the sandbox's own files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from t1x.config import Component, Role
from t1x.tasks.task import Task

if TYPE_CHECKING:
    from t1x.sandbox.leases import Leases


class SandboxError(RuntimeError):
    """The sandbox itself failed (not the command in it): the trial is invalid."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command did."""

    output: str
    """stdout and stderr as they came, decoded with replacement, control characters made visible (`visible`), cut to the
    sandbox's limit (head and tail kept)."""
    exit_code: int | None
    """None where the command was stopped, by its deadline or by a limit of the sandbox, or took the shell down with it."""
    timed_out: bool = False
    shell_restarted: bool = False
    """The command ended the shell (`exit`, a kill); a new one was started in the work folder."""
    truncated: bool = False
    stopped: str = ""
    """The limit of the sandbox (its field's name) for which everything in it was killed, during the command or since the one
    before; a line of the output says how much it was."""
    record: bytes = b""
    """What a fresh process wrote to its descriptor for that (`isolation.RECORD`); the first 8 MiB."""


class SandboxLease(Protocol):
    """A living sandbox with a persistent shell (cwd, variables and functions last from one `exec` to the next)."""

    id: str

    async def exec(self, command: str, timeout: float) -> ExecResult:
        """Runs one command in the persistent shell. Raises `SandboxError` when the sandbox is gone."""

    async def upload(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Writes one file, given by its absolute path inside, owned by the agent; makes parent folders."""

    async def download(self, path: str) -> bytes:
        """Reads one regular file. Raises `FileNotFoundError`."""

    async def stop(self) -> None:
        """Kills every process of the trial; files stay. `exec` is refused from here on."""

    def private_folder(self) -> Path:
        """A new, empty folder on the host for `run_fresh` to mount; the agent never sees it, and it is removed with the sandbox."""

    async def run_fresh(
        self,
        argv: Sequence[str],
        *,
        read_only: Mapping[Path, str],
        writable: Mapping[Path, str],
        timeout: float,
        system: Mapping[Path, str] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> ExecResult:
        """After `stop`: runs argv in new namespaces with an environment of `variables` and little more over the trial's files, with
        host folders mounted inside (private folder -> path inside; `system`: file or folder of this machine -> path inside,
        read-only and as it is). Kills everything at the deadline."""

    async def destroy(self) -> None:
        """Ends and removes everything; safe to call twice and after any failure."""


class SandboxHost(Protocol):
    """Makes sandboxes for a campaign and guarantees that none is left."""

    async def create(self, task: Task) -> SandboxLease:
        """A new sandbox with the task's environment in its work folder. Raises `SandboxError`; `ValueError` for a task whose work
        folder can't be one."""

    async def close(self) -> None:
        """Destroys whatever is still alive."""


class Sandbox(Component):
    """Where agents' commands run."""

    per_node: Annotated[int | None, Role.PLACEMENT, Field(ge=1)] = None
    """Sandboxes that one node hosts at a time (report, section 7.4: 35 at batch 256, 70 to 94 at batch 512); who comes later waits,
    first come, first served. No limit of its own where None: there are as many as trials, `Experiment.concurrency`."""
    create_concurrency: Annotated[int | None, Role.PLACEMENT, Field(ge=1)] = None
    """Sandboxes being created at a time; the others wait. No limit where None."""
    creates_per_second: Annotated[float | None, Role.PLACEMENT, Field(gt=0)] = None
    """Rate of the token bucket that paces creation, a second (report, section 7.4: 6); as fast as it goes where None."""
    create_burst: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 6
    """Creations that the bucket lets through at once (not stated in the report)."""
    setup_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds that creating a sandbox may take, with the commands that make the task's environment; no limit where None."""
    remote_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds after which a trial is ended, whatever it does, counted from the creation of its sandbox (report, section 7.4: 5400);
    no limit where None."""

    def objection(self, agent: float, verifier: float) -> str:
        """Why it can't host trials whose agent and verifier have so many seconds, and what to set; empty where it can."""
        parts = {"setup_deadline": self.setup_deadline or 0.0, "agent_deadline": agent, "verifier_deadline": verifier}
        if self.remote_deadline is None or (needed := sum(parts.values())) <= self.remote_deadline:
            return ""
        *first, last = [f"{name} ({seconds:g} s)" for name, seconds in parts.items() if seconds]
        together = f"{', '.join(first)} and {last} take" if first else f"{last} takes"
        return (
            f"{together} {needed:g} s, but remote_deadline ends a trial after {self.remote_deadline:g} s; raise it or lower the "
            f"others"
        )

    def indeterminism(self) -> str:
        """Why what commands see may depend on when and beside what they run, and what to set; empty where it can be built so that
        it doesn't."""
        return "commands see the time of day; use @BubblewrapSandbox()"

    def missing_deterministic(self) -> list[str]:
        """What this machine lacks for it to be deterministic, beyond `missing`."""
        return []

    def build(self, deterministic: bool = False) -> "Leases":
        """Checks the host and returns the factory, under this component's limits; where it is `deterministic`, what commands see
        doesn't depend on when and beside what they run. Raises `ValueError` that says what the host lacks and how to allow it."""
        from t1x.sandbox.leases import Leases

        return Leases(self.build_host(deterministic), self)

    def build_host(self, deterministic: bool) -> SandboxHost:
        """The backend's own factory, for `build`."""
        raise NotImplementedError

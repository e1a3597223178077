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
from typing import Protocol

from t1x.config import Component
from t1x.tasks.task import Task


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

    def objection(self, agent: float, verifier: float) -> str:
        """Why it can't host trials whose agent and verifier have so many seconds, and what to set; empty where it can."""
        return ""

    def indeterminism(self) -> str:
        """Why what commands see may depend on when and beside what they run, and what to set; empty where it can be built so that
        it doesn't."""
        return "commands see the time of day; use @BubblewrapSandbox()"

    def missing_deterministic(self) -> list[str]:
        """What this machine lacks for it to be deterministic, beyond `missing`."""
        return []

    def build(self, deterministic: bool = False) -> SandboxHost:
        """Checks the host and returns the factory; where it is `deterministic`, what commands see doesn't depend on when and beside
        what they run. Raises `ValueError` that says what the host lacks and how to allow it."""
        raise NotImplementedError

"""What tells the local backends apart: how a shell is started, how a fresh process is, and how all of it is killed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from t1x.sandbox.child import Child
from t1x.sandbox.trial_folder import TrialFolder


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of every process of a sandbox, set before the first command and never raised again."""

    memory: int
    """Address space of one process, MiB."""
    processes: int
    """Processes and threads at a time."""
    file_size: int
    """Largest file, MiB."""

    def as_shell(self, processes: bool) -> str:
        """As a bash command; `processes` says whether the kernel can count them for this sandbox alone."""
        count = f" -u {self.processes}" if processes else ""
        return f"ulimit -c 0 -v {self.memory * 1024} -f {self.file_size * 1024}{count}"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a process."""

    argv: tuple[str, ...]
    """argv[0] is an absolute path."""
    env: dict[str, str]


class Isolation(Protocol):
    """One way to run a trial's processes."""

    def shell(self, trial: TrialFolder) -> Launch:
        """bash reading commands from descriptor 0."""

    def prologue(self, trial: TrialFolder) -> str:
        """What that shell is told first: limits, folder."""

    def fresh(self, trial: TrialFolder, argv: Sequence[str], read_only: Mapping[Path, str], writable: Mapping[Path, str]) -> Launch:
        """`argv` with nothing but the trial's work folder, a new /tmp and the given host folders."""

    def shell_pid(self, child: Child) -> int | None:
        """The shell's process id on the host; None before it exists or after its end."""

    def kill(self, trial: TrialFolder, child: Child) -> None:
        """SIGKILL to everything that `child` and its descendants run; when `child` has been reaped, all of it is gone."""

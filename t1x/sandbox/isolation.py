"""What tells the local backends apart: how a shell is started, how a fresh process is, and how all of it is killed."""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from t1x.sandbox.child import Child
from t1x.sandbox.processes import Running, Snapshot
from t1x.sandbox.trial_folder import TrialFolder
from t1x.tasks.work_folder import LOGS, TESTS, TOOLS


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
        """As bash commands; `processes` says whether the kernel can count them for this sandbox alone. A limit that the
        host has set lower stays."""
        flags = ["-c 0", f"-v {self.memory * 1024}", f"-f {self.file_size * 1024}"]
        if processes:
            flags.append(f"-u {self.processes}")
        return "; ".join(f"ulimit {flag} 2>/dev/null" for flag in flags)


STATUS = 250
"""Descriptor on which a shell tells how a command ended, and a fresh process that it has started; high, so that `exec 3>file`
does not meet it."""
RECORD = 251
"""Descriptor of a fresh process for what it hands to the host, beside what it prints. What was written can't be taken back."""
CANDIDATE = f"{TOOLS}/candidate"
"""Runs its arguments as a program of the agent's: without the tests, the report and the processes of the fresh sandbox. It isn't
there where nothing is isolated."""
PRIVATE = (TESTS, LOGS, TOOLS)
"""Folders of a fresh sandbox that such a program doesn't see."""
BASH = ("/bin/bash", "--norc", "--noprofile")
PATH = "/usr/local/bin:/usr/bin:/bin"
SHELL_ENV = {"PATH": PATH, "USER": "agent", "LANG": "C.UTF-8", "TERM": "dumb"}
FRESH_ENV = {"PATH": PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def exports(variables: Mapping[str, str]) -> str:
    """Bash commands that set environment variables. PATH is put before the sandbox's, of which nothing is lost."""
    if "PATH" in variables:
        places = [place for place in f"{variables['PATH']}:{PATH}".split(":") if place]
        variables = {**variables, "PATH": ":".join(dict.fromkeys(places))}
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables.items())


def announced(prologue: str, argv: Sequence[str]) -> tuple[str, ...]:
    """argv behind a prologue, telling on `STATUS` that it is about to start."""
    return (*BASH, "-c", f'{prologue}; echo 2>/dev/null >&{STATUS}; exec "$@" {STATUS}>&-', "bash", *argv)


def as_user(owner: int | None) -> tuple[str, ...]:
    """The words before a command that make root the trial's user, without any capability or group."""
    if owner is None:
        return ()
    return (program("chroot"), f"--userspec=+{owner}:+{owner}", "--groups=", "/")  # half of what `setpriv` costs


@cache
def program(name: str) -> str:
    """The absolute path of an installed program. Raises `ValueError`."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise ValueError(f"{name} isn't installed")
    return found


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a process."""

    argv: tuple[str, ...]
    """argv[0] is an absolute path."""
    env: dict[str, str]


@dataclass(frozen=True, slots=True)
class Fresh:
    """What `SandboxLease.run_fresh` is given."""

    argv: Sequence[str]
    read_only: Mapping[Path, str] = field(default_factory=dict)
    writable: Mapping[Path, str] = field(default_factory=dict)
    system: Mapping[Path, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


class Isolation(Protocol):
    """One way to run a trial's processes."""

    def shell(self, trial: TrialFolder) -> Launch:
        """bash reading commands from descriptor 0."""

    def prologue(self, trial: TrialFolder) -> str:
        """What that shell is told first: limits, folder."""

    def exports(self, trial: TrialFolder, variables: Mapping[str, str]) -> str:
        """What goes before the prologue where the task has environment variables; empty where it has none."""

    def build(self, trial: TrialFolder, argv: Sequence[str], variables: Mapping[str, str]) -> Launch:
        """A command that makes the task's environment, with all that the shell has."""

    def fetch(self, system: Iterable[Path]) -> None:
        """Makes files of this machine readable for `fresh`; from any thread, and it may take a second. Raises `OSError`."""

    def fresh(self, trial: TrialFolder, fresh: Fresh) -> Launch:
        """A command with nothing but the trial's work folder, a new /tmp and the given host folders; its `system` was fetched."""

    def confined(self) -> tuple[str, ...]:
        """The words before a command that make it, in a fresh sandbox, a program of the agent's: see `CANDIDATE`. Empty where
        nothing is isolated."""

    def shell_pid(self, child: Child) -> int | None:
        """The shell's process id on the host; None before it exists or after its end."""

    def processes(self, snapshot: Snapshot, trial: TrialFolder, child: Child) -> list[Running]:
        """The living processes of the trial: those that `kill` would kill, and maybe our own that guard them."""

    def kill(self, trial: TrialFolder, child: Child) -> None:
        """SIGKILL to everything that `child` and its descendants run; when `child` has been reaped, all of it is gone."""

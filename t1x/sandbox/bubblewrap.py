"""Isolation by bubblewrap: new user, mount, pid, network, ipc and uts namespaces over an allow-listed read-only root.

Invariants:
- the sandbox's first process is the shell itself, so once bubblewrap's own process has been reaped nothing in its pid namespace
  is alive;
- bubblewrap's own process is in another session, so no signal that is sent inside (`suspend -f`, `kill 0`) reaches it;
- bubblewrap never runs as root: root first becomes a user that owns nothing but the trial's folder;
- a confined program, in a second bubblewrap inside the fresh one, has a /proc, a process group and a session of its own: what it
  shares with its judge is the work folder, /tmp and the (empty) network.
"""

import shlex
import subprocess
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from t1x.sandbox.child import Child, children, kill_child
from t1x.sandbox.fixed_clock import fixed_files, same_addresses, write_clock
from t1x.sandbox.isolation import (
    BASH,
    CANDIDATE,
    FRESH_ENV,
    PRIVATE,
    RECORD,
    SHELL_ENV,
    Fresh,
    Launch,
    Limits,
    announced,
    as_user,
    exports,
    program,
)
from t1x.sandbox.processes import Running, Snapshot
from t1x.sandbox.system import SystemFiles
from t1x.sandbox.system_root import system_links, write_etc
from t1x.sandbox.trial_folder import HOME, TMP, TrialFolder
from t1x.tasks.work_folder import TOOLS

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--uid",
    "1000",
    "--gid",
    "1000",
)
_CONFINED = ("--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--as-pid-1", "--new-session")
_LAST_USERS = "--disable-userns"
"""The agent can make no user namespace of its own, in which it could mount file systems that take memory and are seen by nobody."""
_INNER = ("--cap-drop", "ALL", "--die-with-parent", "--new-session")
SHARED_MEMORY = "/dev/shm"
"""The same folder as /tmp: one folder less to make and to remove in every trial."""


class Bubblewrap:
    """Starts shells and fresh processes in bubblewrap; see `Isolation`."""

    def __init__(self, run_folder: Path, limits: Limits, deterministic: bool) -> None:
        """Writes the /etc that all sandboxes of the run folder share; where they are `deterministic`, with a clock that stands
        still. Raises `ValueError` where a program is missing."""
        self._limits = limits
        self._system = SystemFiles(run_folder / "system")
        self._bwrap: tuple[str, ...] = (program("bwrap"), *_NAMESPACES, *_CONFINED)
        self._last_users = (_LAST_USERS,) if _has_option(_LAST_USERS) else ()
        if not self._last_users:
            warnings.warn(
                f"this bubblewrap has no {_LAST_USERS}: what agents keep in file systems that they mount themselves takes memory "
                "that no limit counts; use bubblewrap 0.8 or newer",
                stacklevel=2,
            )
        etc = write_etc(run_folder / "etc")
        self._root = (
            "--ro-bind",
            "/usr",
            "/usr",
            *system_links(),
            "--ro-bind",
            str(etc),
            "/etc",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        )
        shared = ("--bind", SHARED_MEMORY, SHARED_MEMORY)
        self._inner_root: tuple[str, ...] = ("--bind", "/", "/", "--dev", "/dev", *shared, "--proc", "/proc")
        self._whole_proc: tuple[str, ...] = ()
        if deterministic:
            write_clock(etc)
            self._root += fixed_files(etc)
            self._inner_root += fixed_files(Path("/etc"))
            self._whole_proc = ("--proc", f"{TOOLS}/proc")  # the kernel allows a new one only beside one that nothing covers
            self._bwrap = (*same_addresses(), *self._bwrap)
        self._candidate = _write_candidate(run_folder / "candidate", self.confined())

    def shell(self, trial: TrialFolder) -> Launch:
        return self._with_all_folders(trial, BASH)

    def build(self, trial: TrialFolder, argv: Sequence[str], variables: Mapping[str, str]) -> Launch:
        return self._with_all_folders(trial, announced(self.exports(trial, variables) + self.prologue(trial), argv))

    def exports(self, trial: TrialFolder, variables: Mapping[str, str]) -> str:
        return exports(variables)

    def _with_all_folders(self, trial: TrialFolder, argv: Sequence[str]) -> Launch:
        mounts = {**trial.mounts, SHARED_MEMORY: trial.mounts[TMP]}
        return self._launch(trial, mounts, {}, argv, {**SHELL_ENV, "HOME": HOME}, self._last_users)

    def prologue(self, trial: TrialFolder) -> str:
        return self._limits.as_shell(processes=True) + "; umask 022; echo 1000 2>/dev/null >/proc/self/oom_score_adj"

    def fetch(self, system: Iterable[Path]) -> None:
        self._system.fetch(system)

    def fresh(self, trial: TrialFolder, fresh: Fresh) -> Launch:
        tmp = trial.private_folder()
        writable = {TMP: tmp, SHARED_MEMORY: tmp, trial.workdir: trial.work}
        writable |= {inside: folder for folder, inside in fresh.writable.items()}
        read_only = {inside: folder for folder, inside in fresh.read_only.items()}
        read_only |= {inside: self._system.place(source) for source, inside in fresh.system.items()}
        read_only[CANDIDATE] = self._candidate
        private = (*self._whole_proc, *_each("--dir", PRIVATE))
        argv = announced(self.prologue(trial), fresh.argv)
        return self._launch(trial, writable, read_only, argv, {**FRESH_ENV, **fresh.variables}, private)

    def confined(self) -> tuple[str, ...]:
        closed = (*_each("--tmpfs", PRIVATE), *_each("--remount-ro", ("/dev", *PRIVATE)))  # what is put there would take memory
        return (program("bwrap"), "--unshare-user", "--unshare-pid", *self._inner_root, *closed, *_INNER, *self._last_users, "--")

    def shell_pid(self, child: Child) -> int | None:
        inside = children(child.pid) if child.poll() is None else []
        return inside[0] if inside else None

    def processes(self, snapshot: Snapshot, trial: TrialFolder, child: Child) -> list[Running]:
        return snapshot.below(child.pid)  # the namespace's first process takes in the orphans

    def kill(self, trial: TrialFolder, child: Child) -> None:
        first = self.shell_pid(child)
        if first is not None:
            kill_child(child.pid, first)
        else:
            child.kill_group()

    def _launch(
        self,
        trial: TrialFolder,
        writable: dict[str, Path],
        read_only: dict[str, Path],
        argv: Sequence[str],
        env: dict[str, str],
        private: Sequence[str] = (),
    ) -> Launch:
        binds = [part for inside, folder in writable.items() for part in ("--bind", str(folder), inside)]
        binds += [part for inside, folder in read_only.items() for part in ("--ro-bind", str(folder), inside)]
        closed = ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", trial.workdir)
        return Launch((*as_user(trial.owner), *self._bwrap, *self._root, *private, *binds, *closed, "--", *argv), env)


def _has_option(name: str) -> bool:
    """Whether the installed bubblewrap knows an option."""
    return name in subprocess.run([program("bwrap"), "--help"], capture_output=True, text=True, timeout=60).stdout


def _each(option: str, places: Sequence[str]) -> list[str]:
    return [word for place in places for word in (option, place)]


def _write_candidate(path: Path, confined: Sequence[str]) -> Path:
    """The program `CANDIDATE`. Its bash is told (`-p`) to take neither files nor functions from the environment."""
    path.write_text(f'#!/bin/bash -p\nexec {shlex.join(confined)} "$@" {RECORD}>&-\n')
    path.chmod(0o755)
    return path

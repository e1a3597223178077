"""One child process, started without forking this one's memory and watched without a thread.

Invariants:
- a child inherits no descriptor but those it was given (its standard ones are /dev/null otherwise);
- its id can't be reused before it is reaped, and it is reaped once.
"""

import asyncio
import os
import select
import signal
from collections.abc import Mapping
from contextlib import suppress


class Child:
    """A process in a session of its own, started by `posix_spawn` from the calling thread (what dies with its parent, dies with
    that thread)."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str], descriptors: Mapping[int, int]) -> None:
        """Starts argv[0] (an absolute path) with `descriptors`: the child's number -> ours. Raises `OSError`."""
        closed = [(os.POSIX_SPAWN_OPEN, standard, "/dev/null", os.O_RDWR, 0) for standard in {0, 1, 2} - set(descriptors)]
        moves = [(os.POSIX_SPAWN_DUP2, ours, its) for its, ours in descriptors.items()] + closed
        ignored_by_python = [signal.SIGPIPE, signal.SIGXFSZ]
        self.pid = os.posix_spawn(argv[0], argv, env, file_actions=moves, setsid=True, setsigmask=[], setsigdef=ignored_by_python)
        self._pidfd = os.pidfd_open(self.pid)
        self._ended: asyncio.Future[int] | None = None
        self.returncode: int | None = None
        """Exit status, negative for a signal; None while it runs."""

    def watch(self) -> asyncio.Future[int]:
        """A future of the running loop that gets the exit status; await it shielded."""
        if self._ended is None:
            loop = asyncio.get_running_loop()
            self._ended = loop.create_future()
            if self.returncode is None:
                loop.add_reader(self._pidfd, self.poll)
            else:
                self._ended.set_result(self.returncode)
        return self._ended

    def poll(self) -> int | None:
        """Reaps the process if it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                self._close()
        return self.returncode

    def _close(self) -> None:
        ended = self._ended
        if ended is not None and not ended.get_loop().is_closed():
            ended.get_loop().remove_reader(self._pidfd)
            if not ended.done():
                ended.set_result(self.returncode or 0)
        os.close(self._pidfd)

    def kill_group(self) -> None:
        """SIGKILL to the process and whoever is still in its process group."""
        if self.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)

    def wait_blocking(self, timeout: float) -> bool:
        """Waits without an event loop; whether it has ended within `timeout` seconds."""
        if self.poll() is None:
            poller = select.poll()
            poller.register(self._pidfd, select.POLLIN)
            poller.poll(timeout * 1000)
        return self.poll() is not None


def children(pid: int) -> list[int]:
    """The direct children of a process; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listing:
            return [int(child) for child in listing.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kill_child(parent: int, child: int) -> None:
    """SIGKILL to `child` if it still is a child of `parent`, so that a reused id is never hit."""
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(child)
        try:
            if child in children(parent):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def kill_descendants(pid: int, since: int) -> None:
    """SIGKILL to every process below `pid` that was started at `since` or later (clock ticks since boot, of 10 ms as a rule)."""
    frontier = [pid]
    while frontier:
        parent = frontier.pop()
        for child in children(parent):
            frontier.append(child)
            if start_ticks(child) >= since:
                kill_child(parent, child)


def start_ticks(pid: int) -> int:
    """When a process was started, in clock ticks since boot; -1 where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return -1

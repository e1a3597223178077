"""Limits on what a sandbox takes as a whole, which no limit of a single process gives.

All living sandboxes of a host are measured in rounds, and what is over a limit has all its processes killed. It is a watch, not a
wall: what grows fast is over its limit until the next round, and more than one sandbox can be at that time.

Invariants:
- the rounds take a twentieth of a core at most; sandboxes in which nothing runs cost next to nothing;
- a sandbox isn't killed for what it leaves as it is: one that was over a limit is killed again only when it has grown.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from t1x.sandbox.excess import Excess
from t1x.sandbox.local_lease import LocalLease
from t1x.sandbox.processes import Running, Snapshot, shared_memory
from t1x.sandbox.usage import Usage

_PAUSE, _SHARE = 0.5, 20
"""Seconds between two rounds, or so many times the processor time that the last one took."""
_SLACK = 64
"""A sandbox that was over a limit may grow by the limit divided by this: its shell may write a history."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Totals:
    """Limits of one sandbox."""

    disk: int
    """MiB of all its files."""
    files: int
    """Files and folders."""
    memory: int
    """MiB resident in all its processes."""


@dataclass(slots=True)
class _Record:
    """What is known about one sandbox."""

    allowed: dict[str, int] | None
    """Bytes on disk and files; None where the next measurement says what is allowed from then on."""
    activity: object = None
    """Differs when something has run since."""
    stopped: bool = False
    """Measured since the lease was."""
    held: int = 0
    """Bytes of memory in files that only processes hold."""


class Watch:
    """Watches the leases in `leases`; whoever owns them adds and removes them there. Belongs to one event loop."""

    def __init__(self, totals: Totals, leases: Mapping[str, LocalLease]) -> None:
        self._limits = {"disk": totals.disk * _MIB, "files": totals.files}
        self._memory = totals.memory * _MIB
        self._leases = leases
        self._records: dict[str, _Record] = {}
        self._worker = ThreadPoolExecutor(1, "t1x-watch")
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Call when there is a lease; the rounds end when there is none."""
        if self._task is None or self._task.done():
            if self._task is not None and not self._task.cancelled():
                self._task.result()  # what went wrong isn't kept quiet
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Ends the rounds, in the middle of one."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._worker.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        ending = threading.Event()
        try:
            while self._leases:
                took = 0.0
                with suppress(OSError):  # /proc can't be listed where this process has no descriptor left; the next round may
                    took = await loop.run_in_executor(self._worker, self._round, list(self._leases.values()), loop, ending)
                await asyncio.sleep(max(_PAUSE, _SHARE * took))
        finally:
            ending.set()

    def _round(self, leases: list[LocalLease], loop: asyncio.AbstractEventLoop, ending: threading.Event) -> float:
        """Measures each; in the worker. Returns the processor time it took, in seconds."""
        began = time.thread_time()
        snapshot = Snapshot()
        self._records = {lease.id: self._records.get(lease.id) or _Record(self._limits) for lease in leases}
        for lease in leases:
            if ending.is_set():
                break
            processes = lease.processes(snapshot)
            excess = self._excess(lease, self._records[lease.id], processes, ending) if processes else None
            if excess is not None:
                with suppress(RuntimeError):  # the loop has been closed
                    loop.call_soon_threadsafe(self._stop, lease, excess)
        return time.thread_time() - began

    def _stop(self, lease: LocalLease, excess: Excess) -> None:
        if (record := self._records.get(lease.id)) is not None:
            record.activity = None
            if lease.end_processes(excess):
                record.allowed = None

    def _excess(self, lease: LocalLease, record: _Record, processes: list[Running], ending: threading.Event) -> Excess | None:
        activity = (lease.commands, sum(process.ticks for process in processes), {process.pid for process in processes})
        over = None
        if activity != record.activity:
            record.activity = activity
            usage = Usage()
            record.held = usage.add_unlinked(processes, lease.device)
            usage.add_tree(lease.folder, lambda: not ending.is_set())
            over = None if ending.is_set() else self._over({"disk": usage.disk, "files": usage.files}, lease, record)
        if over is None and sum(process.memory for process in processes) + record.held > self._memory:
            taken = shared_memory(processes, record.held)
            if taken > self._memory:
                shown = f"{_mib(taken)} MiB of memory, more than its limit of {_mib(self._memory)} MiB"
                return Excess("total_memory", f"the sandbox's processes take {shown}")
        return over

    def _over(self, taken: dict[str, int], lease: LocalLease, record: _Record) -> Excess | None:
        if lease.stopped and not record.stopped:  # what the agent left isn't held against the verifier
            record.stopped, record.allowed = True, None
        before, record.allowed = record.allowed, {}
        for kind, limit in self._limits.items():
            kept = taken[kind] + limit // _SLACK
            record.allowed[kind] = max(limit, kept if before is None else min(before[kind], kept))
        if before is None:
            return None
        if taken["disk"] > before["disk"]:
            shown = f"{_mib(taken['disk'])} MiB, more than its disk limit of {_mib(self._limits['disk'])} MiB"
            return Excess("disk", f"the sandbox's files take {shown}")
        if taken["files"] > before["files"]:
            shown = f"{taken['files']} files and folders, more than its limit of {self._limits['files']}"
            return Excess("files", f"the sandbox has {shown}")
        return None


def _mib(size: int) -> int:
    return -(-size // _MIB)

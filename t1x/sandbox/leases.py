"""The sandboxes of an experiment on any backend: how fast they are made, how many there are at a time, how long one may take.

Invariants:
- at most `per_node` sandboxes are there or being made, and at most `create_concurrency` are being made; who waits gets the next
  place, first come, first served;
- in any t seconds at most `create_burst` + t × `creates_per_second` creations begin;
- a place is given back once its sandbox is gone, however it ended, or where none came of it.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiolimiter import AsyncLimiter

from t1x.sandbox.lease_counts import LeaseCounts
from t1x.sandbox.protocol import Sandbox, SandboxError, SandboxHost, SandboxLease
from t1x.tasks.task import Task


class RemoteDeadlineError(SandboxError):
    """A sandbox has lived for `remote_deadline` seconds."""


class Lease:
    """A `SandboxLease` that gives its place back when it is gone."""

    def __init__(self, lease: SandboxLease, ends_at: float | None, waited: float, gone: Callable[["Lease", float], None]) -> None:
        self._lease, self._gone = lease, gone
        self._ending: asyncio.Task[None] | None = None
        self.id = lease.id
        self.ends_at = ends_at
        """When the remote deadline is, on the event loop's clock; None where there is none. Whoever runs a trial keeps it."""
        self.waited = waited
        """Seconds for a place and the token bucket, before anything was made."""
        self.exec, self.upload, self.download = lease.exec, lease.upload, lease.download
        self.stop, self.private_folder, self.run_fresh = lease.stop, lease.private_folder, lease.run_fresh

    async def destroy(self) -> None:
        if self._ending is None or self._ending.cancelled():
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        began = time.perf_counter()
        try:
            await self._lease.destroy()
        finally:
            self._gone(self, time.perf_counter() - began)


class Leases:
    """A `SandboxHost` over a backend's own. Belongs to one event loop."""

    def __init__(self, host: SandboxHost, terms: Sandbox) -> None:
        self._host, self._terms = host, terms
        self._places = asyncio.Semaphore(terms.per_node or sys.maxsize)
        self._making = asyncio.Semaphore(terms.create_concurrency or sys.maxsize)
        self._bucket = _bucket(terms)
        self._turn = asyncio.Lock()  # the bucket lets a latecomer pass, a lock doesn't
        self._living: set[Lease] = set()
        self._being_made = 0
        self._counts: list[LeaseCounts] = []
        self._closed = False

    @property
    def living(self) -> int:
        """Sandboxes that are there or being made."""
        return len(self._living) + self._being_made

    @contextmanager
    def counting(self) -> Iterator[LeaseCounts]:
        """What becomes of sandboxes meanwhile."""
        counts = LeaseCounts(most=self.living)
        self._counts.append(counts)
        try:
            yield counts
        finally:
            self._counts.remove(counts)

    async def create(self, task: Task) -> Lease:
        """A new sandbox, when there is a place for it; see `SandboxHost`. Raises `SandboxError` where making it takes longer than
        `setup_deadline`, `RemoteDeadlineError` where `remote_deadline` is over before; what was made of it is gone then."""
        asked = time.perf_counter()
        await self._places.acquire()
        try:
            async with self._making:
                placed = time.perf_counter()
                async with self._turn:
                    if self._bucket is not None:
                        await self._bucket.acquire()
                paced = time.perf_counter()
                ends_at = self._ends_at()
                made = await self._made(task)
        except BaseException:
            self._places.release()
            raise
        done = time.perf_counter()
        lease = Lease(made, ends_at, paced - asked, self._gone)
        self._living.add(lease)
        for counts in self._counts:
            counts.made(waited=placed - asked, paced=paced - placed, created=done - paced)
        return lease

    async def close(self) -> None:
        self._closed = True
        try:
            await self._host.close()
        finally:
            for lease in list(self._living):
                self._gone(lease, None)

    def _ends_at(self) -> float | None:
        lifetime = self._terms.remote_deadline
        return None if lifetime is None else asyncio.get_running_loop().time() + lifetime

    async def _made(self, task: Task) -> SandboxLease:
        if self._closed:
            raise SandboxError("no sandbox is created any more: the host is closed")
        setup, remote = self._terms.setup_deadline, self._terms.remote_deadline
        deadline = asyncio.timeout(min((limit for limit in (setup, remote) if limit is not None), default=None))
        self._being_made += 1
        for counts in self._counts:
            counts.most = max(counts.most, self.living)
        try:
            async with deadline:
                return await self._host.create(task)
        except (SandboxError, TimeoutError) as error:
            for counts in self._counts:
                counts.failed += 1
            if not (deadline.expired() and isinstance(error, TimeoutError)):
                raise
            what = f"task {task.name}: its sandbox wasn't made within"
            if setup is not None and (remote is None or setup <= remote):
                raise SandboxError(f"{what} setup_deadline ({setup:g} s)") from error
            raise RemoteDeadlineError(f"{what} remote_deadline ({remote:g} s)") from error
        finally:
            self._being_made -= 1

    def _gone(self, lease: Lease, seconds: float | None) -> None:
        """Its sandbox is, after so many seconds where it was destroyed on its own."""
        if lease not in self._living:  # `close` was faster
            return
        self._living.remove(lease)
        self._places.release()
        if seconds is not None:
            for counts in self._counts:
                counts.destroyed.append(seconds)


def _bucket(terms: Sandbox) -> AsyncLimiter | None:
    rate, burst = terms.creates_per_second, terms.create_burst
    return None if rate is None else AsyncLimiter(burst, burst / rate)

"""Makes the sandboxes of a campaign on this machine, and leaves none."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

from t1x.sandbox.build import build
from t1x.sandbox.isolation import Isolation
from t1x.sandbox.lease import LocalLease
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.run_folder import RunFolder
from t1x.sandbox.trial_folder import TrialFolder
from t1x.tasks.task import Task

_REMOVING = 4
"""Folders being removed at a time."""
_FIRST_USER, _USERS = 61184, 4336
"""The range that systemd keeps for services with users of their own; nobody logs in with one."""


class LocalHost:
    """See `SandboxHost`. Belongs to one event loop, and its sandboxes to that loop's thread."""

    def __init__(self, run_folder: RunFolder, isolation: Isolation, output_limit: int, concurrency: int) -> None:
        self._run_folder = run_folder
        self._isolation = isolation
        self._output_limit = output_limit
        self._slots = asyncio.Semaphore(concurrency)
        self._leases: dict[str, LocalLease] = {}
        self._workers = ThreadPoolExecutor(_REMOVING, "t1x-remove")
        self._closed = False
        self._numbers = count(os.getpid())

    async def create(self, task: Task) -> LocalLease:
        async with self._slots:
            if self._closed:
                raise SandboxError("no sandbox is created any more: the host is closed")
            number = next(self._numbers)
            id = f"{number}"
            try:
                trial = TrialFolder(self._run_folder.path / id, task.workdir, user_of(number))
            except OSError as error:
                raise SandboxError(f"a sandbox's folder can't be made in {self._run_folder.path}: {error.strerror}") from error
            except ValueError as error:
                raise ValueError(f"task {task.name}: {error}") from error
            lease = LocalLease(id, self._isolation, trial, dict(task.variables), self._output_limit, self._workers, self._forget)
            self._leases[id] = lease
            try:
                await build(task, trial, lease)
                await lease.start()
            except BaseException:
                await lease.destroy()
                raise
            return lease

    async def close(self) -> None:
        self._closed = True
        try:
            outcomes = await asyncio.gather(*(lease.destroy() for lease in list(self._leases.values())), return_exceptions=True)
        finally:
            for lease in list(self._leases.values()):
                with suppress(SandboxError):
                    lease.end_now()
            self._workers.shutdown()
            self._run_folder.remove()
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _forget(self, id: str) -> None:
        self._leases.pop(id, None)


def user_of(number: int) -> int | None:
    """The user (and group) id of a trial where we are root; None where we aren't and it runs as ourselves."""
    return _FIRST_USER + number % _USERS if os.geteuid() == 0 else None

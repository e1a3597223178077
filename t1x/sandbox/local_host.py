"""Makes the sandboxes of a campaign on this machine, and leaves none."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

from t1x.sandbox.build import build
from t1x.sandbox.isolation import Isolation
from t1x.sandbox.local_lease import LocalLease
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.removal import remove_tree
from t1x.sandbox.run_folder import RunFolder
from t1x.sandbox.trial_folder import TrialFolder
from t1x.sandbox.users import Users
from t1x.sandbox.watch import Totals, Watch
from t1x.tasks.task import Task

_WORKERS = 4
"""Threads that remove folders and fetch files of this machine."""


class LocalHost:
    """See `SandboxHost`. Belongs to one event loop, and its sandboxes to that loop's thread."""

    def __init__(self, run_folder: RunFolder, users: Users, isolation: Isolation, totals: Totals, output_limit: int) -> None:
        self._run_folder = run_folder
        self._users = users
        self._isolation = isolation
        self._output_limit = output_limit
        self._leases: dict[str, LocalLease] = {}
        self._watch = Watch(totals, self._leases)
        self._workers = ThreadPoolExecutor(_WORKERS, "t1x-files")
        self._closed = False
        self._numbers = count()

    async def create(self, task: Task) -> LocalLease:
        if self._closed:
            raise SandboxError("no sandbox is created any more: the host is closed")
        id = f"{next(self._numbers)}"
        user = self._users.take()
        try:
            trial = TrialFolder(self._run_folder.path / id, task.workdir, user)
        except OSError as error:
            self._users.give_back(user)
            with suppress(OSError):  # where there is no room for its removal either, the run's end removes it
                remove_tree(self._run_folder.path / id)
            raise SandboxError(f"a sandbox's folder can't be made in {self._run_folder.path}: {error.strerror}") from error
        except ValueError as error:
            self._users.give_back(user)
            raise ValueError(f"task {task.name}: {error}") from error
        lease = LocalLease(id, self._isolation, trial, dict(task.variables), self._output_limit, self._workers, self._forget)
        self._leases[id] = lease
        self._watch.wake()
        try:
            await build(task, trial, lease)
            await lease.start()
        except OSError as error:
            await lease.destroy()
            raise SandboxError(f"the sandbox of task {task.name} can't be started: {error}") from error
        except BaseException:
            await lease.destroy()
            raise
        return lease

    async def close(self) -> None:
        self._closed = True
        try:
            destroyed = (lease.destroy() for lease in list(self._leases.values()))
            outcomes = await asyncio.gather(self._watch.close(), *destroyed, return_exceptions=True)
        finally:
            for lease in list(self._leases.values()):
                with suppress(SandboxError):
                    lease.end_now()
            self._workers.shutdown()
            self._run_folder.remove()
            self._users.close()
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _forget(self, lease: LocalLease) -> None:
        del self._leases[lease.id]
        self._users.give_back(lease.user)

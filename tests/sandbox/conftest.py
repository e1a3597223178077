import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.sandbox.protocol import SandboxHost, SandboxLease
from t1x.tasks.task import Task, TaskFile

TASK = Task("hand-made", "", (TaskFile("data/in.txt", b"one\ntwo\n"), TaskFile("run.sh", b"echo ran\n", 0o755)), (), ())


class Rig:
    """Runs a coroutine with a host or a lease of one backend, in an event loop of its own."""

    task = TASK

    def __init__(self, backend: str, root: Path) -> None:
        self.backend = backend
        self.root = root

    def build(self, **fields: int) -> SandboxHost:
        kind = {"bubblewrap": BubblewrapSandbox, "process": ProcessSandbox}[self.backend]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kind(root=self.root, **fields).build()

    def on_host(self, work: Callable[[SandboxHost], Awaitable], **fields: int):
        async def run():
            host = self.build(**fields)
            try:
                return await work(host)
            finally:
                await host.close()

        return asyncio.run(run())

    def on_lease(self, work: Callable[[SandboxLease], Awaitable], task: Task = TASK, **fields: int):
        async def run(host: SandboxHost):
            lease = await host.create(task)
            return await work(lease)

        return self.on_host(run, **fields)

    def run_all(self, *commands: str, timeout: float = 20.0, **fields: int):
        """The results of commands that follow one another in one sandbox."""

        async def run(lease: SandboxLease):
            return [await lease.exec(command, timeout) for command in commands]

        return self.on_lease(run, **fields)


@pytest.fixture
def open_root(tmp_path_factory):
    """A folder that an unprivileged user can reach (pytest's own are private)."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="t1x-test-"))
    folder.chmod(0o755)
    yield folder
    assert os.listdir(folder) == [], "a sandbox left something behind"
    shutil.rmtree(folder)


@pytest.fixture(params=["bubblewrap", "process"])
def rig(request, open_root):
    return Rig(request.param, open_root)


@pytest.fixture
def bubblewrap(open_root):
    return Rig("bubblewrap", open_root)


@pytest.fixture
def process(open_root):
    return Rig("process", open_root)

"""What every sandbox has to promise is tested by whatever takes the fixture `rig`: once for each backend of `BACKENDS`.

A test of something that only some backends promise names it: `@pytest.mark.promise("isolation")`. A further backend is one more
line in `BACKENDS`.
"""

import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.sandbox.protocol import Sandbox, SandboxHost, SandboxLease
from t1x.tasks.task import Task, TaskFile

TASK = Task("hand-made", "", (TaskFile("data/in.txt", b"one\ntwo\n"), TaskFile("run.sh", b"echo ran\n", 0o755)), (), ())


PROMISES = {
    "local": "it runs on this machine, its files under the folder `root`",
    "isolation": "a command sees and reaches nothing of the machine but its own trial, by absolute paths as a task has them",
    "own processes": "what a command does to all processes that it can reach, it does to its own trial's alone; they are counted",
    "watched": "limits on the sums of files and of memory",
}


@dataclass(frozen=True)
class Backend:
    """One kind of sandbox, and what it promises beyond what all do."""

    kind: type[Sandbox]
    promises: frozenset[str]


_ROOT = os.geteuid() == 0
BACKENDS = {
    "bubblewrap": Backend(BubblewrapSandbox, frozenset(PROMISES)),
    "process": Backend(ProcessSandbox, frozenset({"local", "watched", *(["own processes"] if _ROOT else [])})),
}


def pytest_configure(config):
    config.addinivalue_line("markers", "promise(*what): only of the backends that promise it; see tests/sandbox/conftest.py")


def pytest_generate_tests(metafunc):
    if "rig" in metafunc.fixturenames:
        wanted = {promise for mark in metafunc.definition.iter_markers("promise") for promise in mark.args}
        assert wanted <= set(PROMISES), wanted
        metafunc.parametrize("rig", [name for name, backend in BACKENDS.items() if wanted <= backend.promises], indirect=True)


class Rig:
    """Runs a coroutine with a host or a lease of one backend, in an event loop of its own."""

    task = TASK

    def __init__(self, backend: str, root: Path) -> None:
        self.backend = backend
        """Its name."""
        self.promises = BACKENDS[backend].promises
        self.root = root

    def build(self, **fields: int) -> SandboxHost:
        place = {"root": self.root} if "local" in self.promises else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return BACKENDS[self.backend].kind(**place, **fields).build()

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
def rig(request, sandboxes):
    return Rig(request.param, sandboxes)


@pytest.fixture
def bubblewrap(sandboxes):
    """For what isn't promised but is how bubblewrap does it."""
    return Rig("bubblewrap", sandboxes)


@pytest.fixture
def deterministic(bubblewrap):
    """The same, where what commands see depends on no clock."""
    bubblewrap.build = lambda **fields: BubblewrapSandbox(root=bubblewrap.root, **fields).build(deterministic=True)
    return bubblewrap

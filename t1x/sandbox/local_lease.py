"""One trial's sandbox on this machine.

Invariants: those of `t1x.sandbox.protocol`. A cancelled call kills what it ran;
whatever is interrupted, `destroy` or `end_now` ends it.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from t1x.sandbox.excess import Excess
from t1x.sandbox.fresh import FreshRun
from t1x.sandbox.isolation import Fresh, Isolation
from t1x.sandbox.processes import Running, Snapshot
from t1x.sandbox.protocol import ExecResult, SandboxError
from t1x.sandbox.removal import remove_tree
from t1x.sandbox.shell import Shell
from t1x.sandbox.trial_folder import TrialFolder
from t1x.sandbox.trial_processes import TrialProcesses


class LocalLease:
    """See `SandboxLease`."""

    def __init__(
        self,
        id: str,
        isolation: Isolation,
        trial: TrialFolder,
        variables: Mapping[str, str],
        output_limit: int,
        workers: Executor,
        forget: "Callable[[LocalLease], None]",
    ) -> None:
        self.id = id
        self._isolation = isolation
        self._trial = trial
        self._variables = variables
        self._output_limit = output_limit
        self._workers = workers
        self._forget = forget
        self._state: Literal["running", "stopped", "destroyed"] = "running"
        self._shell: Shell | None = None
        self._processes = TrialProcesses(isolation, trial)
        self._starting = False
        self._excess: Excess | None = None
        self.folder = trial.path
        """Holds all its files."""
        self.device = os.stat(trial.path).st_dev
        """Of that folder."""
        self.commands = 0
        """How many have begun."""
        self._ending: asyncio.Task[None] | None = None
        self._gone = False
        self._removal: Future[None] | None = None

    @property
    def user(self) -> int | None:
        """Whom its processes belong to; None where they run as ourselves."""
        return self._trial.owner

    @property
    def stopped(self) -> bool:
        """Whether the agent's phase is over."""
        return self._state != "running"

    def processes(self, snapshot: Snapshot) -> list[Running]:
        """What runs in it; callable from any thread."""
        return self._processes.running(snapshot)

    def end_processes(self, excess: Excess) -> bool:
        """Kills all of them, and the running command or the next one says why. False where it couldn't be: nothing runs, or its
        shell is being started."""
        if self._starting or not self._processes.alive:
            return False
        self._excess = excess
        self._processes.kill()
        if self._shell is not None:
            self._shell.kill()
        return True

    async def build(self, argv: Sequence[str], variables: Mapping[str, str], timeout: float) -> ExecResult:
        """Before `start`: runs a command that makes the task's environment. Nothing that it started is alive afterwards."""
        self._require("running")
        self._trial.allow_entry()
        step = FreshRun(self._isolation, self._trial, self._isolation.build(self._trial, argv, variables))
        return await self._finish(step, timeout)

    async def start(self) -> None:
        """Starts the shell. Raises `SandboxError`."""
        self._starting = True
        try:
            self._trial.allow_entry()
            self._shell = Shell(self._isolation, self._trial, self._variables, self._output_limit)
            self._processes.add(self._shell.child)
            await self._shell.start()
        finally:
            self._starting = False

    async def exec(self, command: str, timeout: float) -> ExecResult:
        self._require("running")
        if "\0" in command:
            return ExecResult("a command can't hold a NUL character; nothing was run\n", exit_code=2)
        assert self._shell is not None
        self.commands += 1
        died_before = not self._shell.alive
        if died_before:
            await self._restart()
        earlier, self._excess = self._excess, None
        try:
            result = await self._shell.run(command, timeout)
        except BaseException:
            self._shell.kill()
            raise
        self._require("running")
        if earlier is not None:
            result = earlier.before(result)
        if self._shell.alive and not died_before:
            return result
        if not self._shell.alive:
            await self._restart()
        return replace(self._with_excess(result), shell_restarted=True)

    async def upload(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._require("running", "stopped")
        self._trial.write(path, content, mode)

    async def download(self, path: str) -> bytes:
        self._require("running", "stopped")
        return self._trial.read(path)

    async def stop(self) -> None:
        self._require("running", "stopped")
        self._state = "stopped"
        await self._end_processes()
        self._excess = None

    def private_folder(self) -> Path:
        self._require("running", "stopped")
        with self._host_sound():
            return self._trial.private_folder()

    async def run_fresh(
        self,
        argv: Sequence[str],
        *,
        read_only: Mapping[Path, str],
        writable: Mapping[Path, str],
        timeout: float,
        system: Mapping[Path, str] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> ExecResult:
        self._require("stopped")
        if system:
            try:
                await asyncio.get_running_loop().run_in_executor(self._workers, self._isolation.fetch, system)
            except OSError as error:
                raise SandboxError(f"sandbox {self.id}: {error.filename} can't be handed in: {error.strerror}") from error
            self._require("stopped")
        with self._host_sound():
            self._trial.allow_entry()
            launch = self._isolation.fresh(self._trial, Fresh(argv, read_only, writable, system, variables))
            fresh = FreshRun(self._isolation, self._trial, launch)
        return await self._finish(fresh, timeout)

    async def destroy(self) -> None:
        if self._ending is None or self._ending.cancelled():
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    def end_now(self) -> None:
        """`destroy` without an event loop, for what must end at once. Raises `SandboxError` where a process can't be killed."""
        if self._gone:
            return
        self._state = "destroyed"
        if not self._processes.end_now():
            raise SandboxError(f"sandbox {self.id}: the kernel holds a killed process back; its folder {self._trial.path} is left")
        self._close()
        try:
            if self._removal is None or self._removal.cancel():
                remove_tree(self._trial.path)
            else:
                self._removal.result()
        except OSError as error:
            raise SandboxError(f"the folder of sandbox {self.id} can't be removed: {error}") from error
        self._gone = True
        self._forget(self)

    async def _end(self) -> None:
        self._state = "destroyed"
        try:
            await self._end_processes()
            if self._gone:
                return
            self._removal = self._workers.submit(remove_tree, self._trial.path)
            await asyncio.wrap_future(self._removal)
        except (OSError, asyncio.CancelledError):
            pass  # removal failed, which `end_now` tells, or the loop is being torn down: what is left is done without it
        self.end_now()

    async def _finish(self, run: FreshRun, timeout: float) -> ExecResult:
        """Nothing that it started is alive afterwards."""
        self._processes.add(run.child)
        try:
            return self._with_excess(await run.finish(self._output_limit, timeout))
        finally:
            await self._end_processes()

    async def _end_processes(self) -> None:
        if not await self._processes.end():
            raise SandboxError(f"sandbox {self.id}: the kernel holds a killed process back")
        self._close()

    def _with_excess(self, result: ExecResult) -> ExecResult:
        """The result of what was running when the processes were ended, where they were."""
        excess, self._excess = self._excess, None
        return result if excess is None else excess.at_end_of(result)

    def _close(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    async def _restart(self) -> None:
        await self._end_processes()
        with self._host_sound():
            await self.start()

    @contextmanager
    def _host_sound(self) -> Iterator[None]:
        """What this machine refuses (a full disk, no descriptor left) is the sandbox's failure."""
        try:
            yield
        except OSError as error:
            raise SandboxError(f"sandbox {self.id}: {error}") from error

    def _require(self, *states: str) -> None:
        if self._state not in states:
            raise SandboxError(f"sandbox {self.id} is {self._state}")

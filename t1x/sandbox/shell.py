"""A persistent bash behind pipes: one command at a time, each with its own deadline.

Invariants:
- a command's end is told by a random token on a pipe of its own, which no command inherits: output can't be mistaken for it, and
  a background process that keeps the output pipe open holds nothing up;
- the shell is alive and waiting for the next command after `run`, or it is dead with all that ran in it.
"""

import asyncio
import os
import re
import secrets
import shlex
import time
from collections.abc import Mapping

from t1x.sandbox.child import Child, kill_descendants
from t1x.sandbox.isolation import STATUS, Isolation
from t1x.sandbox.output import BoundedOutput
from t1x.sandbox.pipe_reader import PipeReader
from t1x.sandbox.protocol import ExecResult, SandboxError
from t1x.sandbox.trial_folder import TrialFolder

_START_TIMEOUT = 60.0
_KILL_ROUNDS, _KILL_PAUSE = 10, 0.03
_CHUNK = 4096
_TICKS = os.sysconf("SC_CLK_TCK")


class Shell:
    """One living bash. `start` first; dead once `alive` is false, and then all that ran in it is dead as well."""

    def __init__(self, isolation: Isolation, trial: TrialFolder, variables: Mapping[str, str], output_limit: int) -> None:
        self._isolation = isolation
        self._variables = variables
        self._trial = trial
        self._output_limit = output_limit
        self._last_code = 0
        self._busy = self._killed = self._closing = False
        commands, self._commands = os.pipe()
        self._output, output = trial.pipe()
        self._status, status = os.pipe()
        launch = isolation.shell(trial)
        try:
            self.child = Child(launch.argv, launch.env, {0: commands, 1: output, 2: output, STATUS: status})
        except OSError as error:
            self._close()
            raise SandboxError(f"{launch.argv[0]} can't be started: {error.strerror}") from error
        finally:
            for descriptor in (commands, output, status):
                os.close(descriptor)
        os.set_blocking(self._commands, False)

    @property
    def alive(self) -> bool:
        return not self._killed and self.child.poll() is None

    async def start(self) -> None:
        """Waits until it takes commands. Raises `SandboxError` with what the shell or the sandbox said."""
        self.child.watch()
        prologue = self._isolation.exports(self._trial, self._variables) + self._isolation.prologue(self._trial)
        result = await self._run(prologue, _START_TIMEOUT)
        if result.exit_code != 0:
            raise SandboxError(
                f"the sandbox's shell didn't start: {result.output.strip() or f'exit status {self.child.returncode}'}"
            )

    async def run(self, command: str, timeout: float) -> ExecResult:
        """Runs one command with its input from /dev/null. The shell may be dead afterwards."""
        before = f"(exit {self._last_code})\n" if self._last_code else ""  # so that `$?` lasts as well
        result = await self._run(f"{before}eval {shlex.quote(command)} </dev/null {STATUS}>&-", timeout)
        self._last_code = result.exit_code or 0
        return result

    def kill(self) -> None:
        """SIGKILL to the shell and everything in it."""
        self._killed = True
        self._isolation.kill(self._trial, self.child)

    def close(self) -> None:
        """Lets go of the pipes, when the running command has seen the shell's end. Call once."""
        self._closing = True
        if not self._busy:
            self._close()

    def _close(self) -> None:
        for descriptor in (self._commands, self._output, self._status):
            os.close(descriptor)

    async def _run(self, script: str, timeout: float) -> ExecResult:
        assert not self._busy, "a shell runs one command at a time"
        self._busy = True
        try:
            return await self._run_alone(script, timeout)
        finally:
            self._busy = False
            if self._closing:
                self._close()

    async def _run_alone(self, script: str, timeout: float) -> ExecResult:
        started = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
        token = secrets.token_hex(8)
        # one line, so that it has been parsed whole before a syntax error in the command upsets bash's parser
        line = f"{script}; {{ printf '{token} %d\\n' $? >&{STATUS}; }} 2>/dev/null\n"
        output = BoundedOutput(self._output_limit)
        code: int | None = None
        timed_out = False
        reader = PipeReader(self._output, output)
        reader.start()
        try:
            with _Ending(self._status, self.child, token) as ended:
                try:
                    async with asyncio.timeout(timeout):
                        await self._send(line.encode("utf-8", "replace"), ended)
                        code = await asyncio.shield(ended)
                except TimeoutError:
                    timed_out = True
                    if not await self._interrupt(ended, started):
                        self.kill()
                        await asyncio.shield(self.child.watch())
        finally:
            reader.stop()
        return ExecResult(output.text(), code, timed_out=timed_out, truncated=output.truncated)

    async def _interrupt(self, ended: "asyncio.Future[int | None]", started: int) -> bool:
        """Kills what the command started, for as long as it starts more; whether the shell came back."""
        for _ in range(_KILL_ROUNDS):
            pid = self._isolation.shell_pid(self.child)
            if pid is None:
                return False
            kill_descendants(pid, started)
            await asyncio.wait([ended], timeout=_KILL_PAUSE)
            if ended.done():
                return ended.result() is not None
        return False

    async def _send(self, data: bytes, ended: "asyncio.Future[int | None]") -> None:
        loop = asyncio.get_running_loop()
        while data and not ended.done():
            try:
                data = data[os.write(self._commands, data) :]
            except BlockingIOError:
                room = asyncio.Event()
                loop.add_writer(self._commands, room.set)
                try:
                    await room.wait()  # a dead reader counts as room
                finally:
                    loop.remove_writer(self._commands)
            except BrokenPipeError:  # it is dying: `ended` tells
                return


class _Ending:
    """While one command runs: a future that gets its exit status from the status pipe, or None where the shell ends."""

    def __init__(self, status: int, child: Child, token: str) -> None:
        self._status, self._child = status, child
        self._pattern = re.compile(token.encode() + rb" (\d+)\n")
        self._heard = b""
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int | None] = self._loop.create_future()

    def __enter__(self) -> "asyncio.Future[int | None]":
        self._loop.add_reader(self._status, self._read)
        self._child.watch().add_done_callback(self._died)
        return self._ended

    def __exit__(self, *exc: object) -> None:
        self._loop.remove_reader(self._status)
        self._child.watch().remove_done_callback(self._died)

    def _read(self) -> None:
        data = os.read(self._status, _CHUNK)
        self._heard = (self._heard + data)[-_CHUNK:]
        found = self._pattern.search(self._heard)
        if found and not self._ended.done():
            self._ended.set_result(int(found[1]))
        if not data:  # `exec` replaced the shell: only its end counts
            self._loop.remove_reader(self._status)

    def _died(self, _: "asyncio.Future[int]") -> None:
        if not self._ended.done():
            self._ended.set_result(None)

"""A process run to its end after `stop`, within a deadline; nothing of its own is alive when it has ended."""

import asyncio
import os
import socket

from t1x.sandbox.child import Child
from t1x.sandbox.isolation import RECORD, STATUS, Isolation, Launch
from t1x.sandbox.output import Beginning, BoundedOutput
from t1x.sandbox.pipe_reader import PipeReader
from t1x.sandbox.protocol import ExecResult, SandboxError
from t1x.sandbox.trial_folder import TrialFolder

_RECORD_LIMIT = 8 << 20
"""Bytes of the record that are kept."""


class FreshRun:
    """One such process; started at once."""

    def __init__(self, isolation: Isolation, trial: TrialFolder, launch: Launch) -> None:
        """Raises `SandboxError` where it can't be started."""
        self._isolation = isolation
        self._trial = trial
        self._output, output = trial.pipe()
        self._status, status = os.pipe()
        self._record, record = socket.socketpair()  # a pipe could be opened again by its number, read and so emptied
        try:
            self.child = Child(launch.argv, launch.env, {1: output, 2: output, STATUS: status, RECORD: record.fileno()})
        except OSError as error:
            self._close()
            raise SandboxError(f"{launch.argv[0]} can't be started: {error.strerror}") from error
        finally:
            os.close(output)
            os.close(status)
            record.close()
        os.set_blocking(self._status, False)

    async def finish(self, output_limit: int, timeout: float) -> ExecResult:
        """Waits for its end, `timeout` seconds at most, then kills it with all it started. Call once. Raises `SandboxError`
        where the sandbox failed before the process began."""
        output = BoundedOutput(output_limit)
        reader = PipeReader(self._output, output)
        reader.start()
        record = Beginning(_RECORD_LIMIT)
        recorder = PipeReader(self._record.fileno(), record)
        recorder.start()
        ended = self.child.watch()
        try:
            await asyncio.wait([ended], timeout=timeout)
            timed_out = not ended.done()
            self._isolation.kill(self._trial, self.child)
            code = await asyncio.shield(ended)
            reader.stop()
            recorder.stop()
            if not self._began():
                raise SandboxError(f"a fresh process didn't start: {output.text().strip() or f'exit status {code}'}")
        finally:
            reader.stop()
            recorder.stop()
            self._close()
        exit_code = None if timed_out else code
        return ExecResult(output.text(), exit_code, timed_out=timed_out, truncated=output.truncated, record=record.content())

    def _began(self) -> bool:
        try:
            return bool(os.read(self._status, 1))
        except BlockingIOError:
            return False

    def _close(self) -> None:
        os.close(self._output)
        os.close(self._status)
        self._record.close()

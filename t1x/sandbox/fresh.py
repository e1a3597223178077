"""A process run to its end after `stop`, within a deadline; nothing of its own is alive when it has ended."""

import asyncio
import os

from t1x.sandbox.child import Child
from t1x.sandbox.isolation import Isolation, Launch
from t1x.sandbox.output import BoundedOutput
from t1x.sandbox.protocol import ExecResult, SandboxError
from t1x.sandbox.trial_folder import TrialFolder

_CHUNK = 65536


class FreshRun:
    """One such process; started at once."""

    def __init__(self, isolation: Isolation, trial: TrialFolder, launch: Launch) -> None:
        """Raises `SandboxError` where it can't be started."""
        self._isolation = isolation
        self._trial = trial
        self._output, output = os.pipe()
        try:
            self.child = Child(launch.argv, launch.env, {1: output, 2: output})
        except OSError as error:
            os.close(self._output)
            raise SandboxError(f"{launch.argv[0]} can't be started: {error.strerror}") from error
        finally:
            os.close(output)
        os.set_blocking(self._output, False)

    async def finish(self, output_limit: int, timeout: float) -> ExecResult:
        """Waits for its end, `timeout` seconds at most, then kills it with all it started. Call once."""
        output = BoundedOutput(output_limit)
        loop = asyncio.get_running_loop()
        ended = self.child.watch()
        loop.add_reader(self._output, self._read, output)
        try:
            await asyncio.wait([ended], timeout=timeout)
            timed_out = not ended.done()
            self._isolation.kill(self._trial, self.child)
            code = await asyncio.shield(ended)
            self._read(output)
        finally:
            loop.remove_reader(self._output)
            os.close(self._output)
        return ExecResult(output.text(), None if timed_out else code, timed_out=timed_out, truncated=output.truncated)

    def _read(self, output: BoundedOutput) -> None:
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        output.add(data)
        if not data:
            asyncio.get_running_loop().remove_reader(self._output)

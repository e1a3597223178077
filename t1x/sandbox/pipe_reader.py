"""Reading what a process prints while the event loop does other work.

Invariant: a process that prints without end takes no more of the loop than one read every two milliseconds, and is held up itself.
"""

import asyncio
import fcntl
import os
import termios

from t1x.sandbox.output import Beginning, BoundedOutput

_CHUNK = 65536
_FREE, _PAUSE = 8 << 20, 0.002
"""After 8 MiB, 32 MiB/s at most are read."""


class PipeReader:
    """Adds what comes through a pipe to an output, from `start` to `stop`."""

    def __init__(self, descriptor: int, output: BoundedOutput | Beginning) -> None:
        self._descriptor = descriptor
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop.add_reader(self._descriptor, self._read)

    def stop(self) -> None:
        """Stops reading, after what is in the pipe now; a writer that goes on is left to the next reader."""
        self._loop.remove_reader(self._descriptor)
        if self._pause is not None:
            self._pause.cancel()
        waiting = bytearray(4)
        fcntl.ioctl(self._descriptor, termios.FIONREAD, waiting)
        left = int.from_bytes(waiting, "little")
        while left > 0 and (data := os.read(self._descriptor, min(left, _CHUNK))):
            self._output.add(data)
            left -= len(data)

    def _read(self) -> None:
        data = os.read(self._descriptor, _CHUNK)
        self._output.add(data)
        if not data:
            self._loop.remove_reader(self._descriptor)
        elif self._output.total > _FREE:
            self._loop.remove_reader(self._descriptor)
            self._pause = self._loop.call_later(_PAUSE, self.start)

"""Signals that end a process, made into what Ctrl-C does, so that a run is closed in order."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""`kill`, and a terminal that is closed."""


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """In this block each of `ENDING` does what SIGINT would, unless someone already handles or ignores it (`nohup`)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    free = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)

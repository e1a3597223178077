"""Lock files: one process at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, busy: Callable[[str], None], setting: str) -> Iterator[None]:
    """Holds a lock file, which is made with its folder and names this process by its number; processes that are started don't
    inherit the lock. Where another process holds it, calls `busy` with that one's number, and waits unless that raises. Raises
    `ValueError` where the file can't be made; `setting` is the field that says where it lies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise ValueError(f"{path.parent} can't be written: {error.strerror}; set {setting} to a folder you may write") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            busy(lock.read().strip() or "?")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield

"""Looks at what was opened or asked about: a path is one thing when the guard sees it and may be another when it is opened, where a
program of the agent's still runs, and a link may lead to what this process alone has, through /proc.

The tests' authors are honest, so changing the functions that they call is enough.
"""

import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Any

_PROC = "/proc/"


def look_at_opened(tests: str) -> None:
    """From here on a file can be opened only by a path of its own if it is among the `tests`, tells about a process, or is open in
    this one and has no name: what tests print, for one. Others raise `PermissionError`; so does asking for the size and the time of
    one of the tests, which is all that `filecmp` compares."""
    _replace(io.open, _looking(io.open, tests, lambda opened: opened.fileno(), lambda opened: opened.close()))
    _replace(os.open, _looking(os.open, tests, lambda opened: opened, os.close))
    _replace(os.stat, _asking(os.stat, tests))


def _looking(real: Callable[..., Any], tests: str, descriptor: Callable[[Any], int], close: Callable[[Any], None]) -> Any:
    @functools.wraps(real)
    def opening(path: Any, *args: Any, **named: Any) -> Any:
        opened = real(path, *args, **named)
        if isinstance(path, int) or named.get("dir_fd") is not None or named.get("opener") is not None:
            return opened
        try:
            _look(os.path.abspath(os.fsdecode(path)), descriptor(opened), tests)
        except BaseException:
            close(opened)
            raise
        return opened

    return opening


def _asking(real: Callable[..., os.stat_result], tests: str) -> Any:
    closed = {_identity(os.lstat(os.path.join(at, name))) for at, folders, files in os.walk(tests) for name in folders + files}

    @functools.wraps(real)
    def asking(path: Any, **how: Any) -> os.stat_result:
        status = real(path, **how)
        if _identity(status) in closed and not isinstance(path, int) and how.get("dir_fd") is None:
            name = os.path.abspath(os.fsdecode(path))
            if not name.startswith(tests):
                raise PermissionError(f"{name} leads into the folder of the tests")
        return status

    return asking


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _look(name: str, descriptor: int, tests: str) -> None:
    if name.startswith((_PROC, "/dev/")) and not name.startswith("/dev/shm/"):
        return
    place = os.readlink(f"/proc/self/fd/{descriptor}")
    for closed in (tests, _PROC):
        if f"{place}/".startswith(closed) and not f"{name}/".startswith(closed):
            raise PermissionError(f"{name} led to {place} when it was opened")
    status = os.fstat(descriptor)
    if status.st_nlink == 0 and any(os.path.samestat(status, other) for other in _others(descriptor)):
        raise PermissionError(f"{name} led to a file without a name, which is open here")


def _others(descriptor: int) -> list[os.stat_result]:
    """Of the other open files."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        if int(number) != descriptor:
            try:
                found.append(os.fstat(int(number)))
            except OSError:  # that of the listing itself
                continue
    return found


def _replace(real: Callable[..., Any], by: Callable[..., Any]) -> None:
    """Under every name that a module has for it. Not in those where imports take it from: the guard sees who imports."""
    for where, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is real and where not in ("_io", "posix"):
                setattr(module, name, by)

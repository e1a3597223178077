"""Tells, before it happens, that code of the agent would run in the judge's process, and ends the process.

Audit hooks (PEP 578) see what Python is about to do and can't be removed; the line that the guard writes can't be taken back. So
neither can the verdict, whatever the code would have done. Files that would mislead a test are refused with an error, which fails
the test: a link into the tests' folder, and a FIFO, at which it would wait.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Sequence
from importlib.util import source_from_cache
from types import CodeType, FrameType
from typing import Any, NoReturn

from .opened import look_at_opened

_SHOWN = 1000
"""Characters of a path or name that are told, so that a line is written whole."""
_GENERATORS = ("collections/__init__.py", "dataclasses.py", "typing.py", "enum.py", "functools.py", "inspect.py")
"""Modules of the standard library that make code of their own as text."""
_SYSTEM = ("/usr/", "/lib/", "/lib64/")
_IMPORTERS = ("<frozen importlib", "<frozen zipimport", "runpy.py", "pkgutil.py")


class Guard:
    """The hook of one process."""

    def __init__(self, record: int, trusted: Sequence[str], tests: str, candidate: str | None) -> None:
        """`trusted` are the folders, beside `tests`, whose code may run here, the standard library's first; `candidate` is the
        program through which others are started, None where they are started as they are."""
        self._record = record
        self._libraries = tuple(os.path.join(os.path.realpath(folder), "") for folder in trusted)
        self._generators = tuple(os.path.join(self._libraries[0], name) for name in _GENERATORS)
        self._queues = os.path.join(self._libraries[0], "multiprocessing/queues.py")
        self._packages = self._libraries[1:]
        self._tests = os.path.join(os.path.realpath(tests), "")
        self._candidate = candidate
        self._watched: dict[str, Callable[[FrameType, Any], None]] = {
            "exec": self._exec,
            "import": self._import,
            "open": self._open,
            "os.listdir": self._path,
            "os.scandir": self._path,
            "sqlite3.connect": self._path,
            "marshal.loads": self._marshal,
            "marshal.load": self._marshal,
            "ctypes.dlopen": self._library,
            "pickle.find_class": self._unpickle,
            "sqlite3.load_extension": lambda _, args: self._tell(f"an extension of SQLite, {args[1]}"),
        }
        if candidate is not None:
            self._watched |= {
                "subprocess.Popen": self._start,
                "os.exec": self._start,
                "os.posix_spawn": self._start,
                "os.system": self._start,
            }

    def install(self) -> None:
        """For the rest of this process."""
        watched, current = self._watched, sys._getframe
        if self._candidate is not None:
            import _posixsubprocess

            _posixsubprocess.fork_exec = self._unwatched  # what `subprocess` has is its own; this one has no event

        def hook(event: str, args: Any) -> None:
            if (check := watched.get(event)) is not None:
                check(current(1), args)

        look_at_opened(self._tests)
        sys.addaudithook(hook)

    def _exec(self, caller: FrameType, args: Any) -> None:
        code = args[0]
        name = code.co_filename if isinstance(code, CodeType) else repr(code)
        if name.startswith("<"):
            trusted = name.startswith("<frozen ") or caller.f_code.co_filename.startswith((*self._generators, *self._packages))
        else:
            trusted = self._trusts(name)
        if not trusted:
            self._tell(f"the code {name}, run by {caller.f_code.co_filename}")

    def _import(self, caller: FrameType, args: Any) -> None:
        if args[1] is not None and not self._trusts(os.fsdecode(args[1])):
            self._tell(f"the extension module {os.fsdecode(args[1])}")

    def _marshal(self, caller: FrameType, args: Any) -> None:
        name = caller.f_code.co_filename
        if name.startswith("<frozen importlib"):
            name = str(caller.f_locals.get("bytecode_path"))
        if not self._trusts(name) or name.startswith(self._tests):
            self._tell(f"compiled code, read by or from {name}")

    def _unpickle(self, caller: FrameType, args: Any) -> None:
        if not caller.f_code.co_filename.startswith(self._queues):  # what a child of this very process hands back
            self._tell(f"what a pickle names, {args[0]}.{args[1]}")

    def _library(self, caller: FrameType, args: Any) -> None:
        name = os.fsdecode(args[0] or "")
        if "/" in name and not self._trusts(name) and not os.path.realpath(name).startswith(_SYSTEM):
            self._tell(f"the library {name}")

    def _start(self, caller: FrameType, args: Any) -> None:
        if os.fsdecode(args[0]) != self._candidate:
            self._tell(f"an unconfined program, {os.fsdecode(args[0])}")

    def _unwatched(self, *args: Any) -> NoReturn:
        self._tell("a Python process that isn't watched (multiprocessing's `spawn`)")

    def _open(self, caller: FrameType, args: Any) -> None:
        path = args[0]
        if isinstance(path, str | bytes):
            name = caller.f_code.co_filename
            if name.startswith(_IMPORTERS) or name.endswith(_IMPORTERS):
                if not self._trusts(os.fsdecode(path)):
                    self._tell(f"the module {_source(os.fsdecode(path))}")
            else:
                self._path(caller, args)

    def _path(self, caller: FrameType, args: Any) -> None:
        path = args[0]
        if not isinstance(path, str | bytes):
            return
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith((self._tests, *self._libraries)):
            return
        if os.path.join(os.path.realpath(name), "").startswith(self._tests) and name + "/" != self._tests:
            raise PermissionError(f"{name} leads into the folder of the tests")
        try:
            kind = os.stat(name).st_mode
        except OSError:
            return
        if stat.S_ISFIFO(kind):
            raise PermissionError(f"{name} is a FIFO; nothing is read from it")

    def _trusts(self, path: str) -> bool:
        return os.path.realpath(path).startswith((self._tests, *self._libraries))

    def _tell(self, what: str) -> NoReturn:
        os.write(self._record, json.dumps({"in_process": what[:_SHOWN]}).encode() + b"\n")
        os._exit(70)


def _source(path: str) -> str:
    """What a module was written as, also where what Python compiled of it is read."""
    try:
        return source_from_cache(path)
    except ValueError:
        return path

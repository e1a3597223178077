"""Makes everything that the tests start a program of the agent's: it runs behind the program `CANDIDATE` of the sandbox.

The tests' authors are honest, so changing the functions that they call is enough; the guard sees whoever goes around them. A
program's environment is set inside: a library that it names (LD_LIBRARY_PATH) must not be loaded by what confines the program.
"""

import errno
import functools
import inspect
import os
import subprocess
from collections.abc import Mapping
from typing import Any, NoReturn

_SHELL = "/bin/sh"


def confine(candidate: str) -> None:
    """Changes `subprocess` and the functions of `os` that start programs, for this process."""
    subprocess.Popen.__init__ = _popen(subprocess.Popen.__init__, candidate)  # type: ignore[method-assign]
    execve, spawn = os.execve, os.posix_spawn

    def run(path: Any, argv: Any, env: Mapping[Any, Any] | None = None) -> NoReturn:
        _require(path, env, None)
        execve(candidate, _words(candidate, [path, *list(argv)[1:]], env), {})

    def start(path: Any, argv: Any, env: Any, **more: Any) -> int:
        _require(path, env, None)
        return spawn(candidate, _words(candidate, [path, *list(argv)[1:]], env), {}, **more)

    def system(command: Any) -> int:
        status = subprocess.call(command, shell=True)
        return status << 8 if status >= 0 else -status

    os.execv = run
    os.execve = run
    os.posix_spawn = os.posix_spawnp = start
    os.system = system


def _popen(init: Any, candidate: str) -> Any:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def popen(*given: Any, **named: Any) -> None:
        call = signature.bind(*given, **named)
        values = call.arguments
        args, executable = values["args"], values.get("executable")
        argv = [args] if isinstance(args, str | bytes | os.PathLike) else list(args)
        if values.get("shell"):
            argv = [executable or _SHELL, "-c", *argv]
        elif executable is not None:
            argv[:1] = [executable]
        if argv:
            _require(argv[0], values.get("env"), values.get("cwd"))
        values.update(args=_words(candidate, argv, values.get("env")), shell=False, executable=None, env={})
        init(*call.args, **call.kwargs)
        values["self"].args = args

    return popen


def _words(candidate: str, argv: list[Any], env: Mapping[Any, Any] | None) -> list[str]:
    variables = [f"{os.fsdecode(name)}={os.fsdecode(value)}" for name, value in (os.environ if env is None else env).items()]
    words = list(map(os.fsdecode, argv))
    if words[:1] == [candidate]:  # confined by its author, or by `subprocess` on its way to `posix_spawn`
        words = words[1:]
    return [candidate, "/usr/bin/env", "-i", *variables, *words]


def _require(program: Any, env: Mapping[Any, Any] | None, folder: Any) -> None:
    """Raises what starting a program raises that isn't there or can't be run; the confined start would only end with a status."""
    name = os.fsdecode(program)
    places = [name] if "/" in name else [os.path.join(part, name) for part in os.get_exec_path(env)]
    here = os.fsdecode(folder or "")
    found = [path for place in places if os.path.exists(path := os.path.join(here, place))]
    if not any(os.access(path, os.X_OK) and not os.path.isdir(path) for path in found):
        code = errno.EACCES if found else errno.ENOENT
        raise OSError(code, os.strerror(code), name)

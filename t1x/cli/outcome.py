"""Turns what a command raises into a message and an exit code: the only place that does.

0 is success, 2 a mistake of the user's (one message, no traceback), 3 an experiment that needs what isn't here, 130 an
interruption, 141 one whose output nobody reads any more (as `head` ends), 1 a fault in t1x. A component of the user's that fails is
a mistake of the user's; its traceback is kept in a file.
"""

import re
import sys
import traceback
from collections.abc import Sequence

MISTAKES = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""What rooms raise for something that the user did. `ConfigError` is a `ValueError`."""
EXHAUSTED = {
    "a disk is full; make room and run the command again": re.compile("no space left|quota exceeded|disk is full", re.IGNORECASE),
    "memory ran out; choose smaller sizes": re.compile("can(no|')t allocate memory", re.IGNORECASE),
}
"""How the system, safetensors, SQLite and torch say it (each with an exception of its own), and what to do about it."""


def outcome(arguments: Sequence[str] | None) -> int:
    """Runs a command line to its exit code."""
    try:
        from t1x.cli.app import app

        app(args=list(arguments) if arguments is not None else None, prog_name="t1x")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Click and Rich end with 1 then; the shell says 128 + SIGPIPE
            return 141
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return _interrupted() if code == 130 else code
    except KeyboardInterrupt:
        return _interrupted()
    except MISTAKES as mistake:
        print(f"error: {_message(mistake)}", file=sys.stderr)
        return 2
    except Exception as fault:
        from t1x.config.blame import users_place
        from t1x.config.requirements import NotHere

        if isinstance(fault, NotHere):
            print(fault, file=sys.stderr)
            return 3
        for advice, said in EXHAUSTED.items():
            if said.search(str(fault)):
                print(f"error: {advice} ({str(fault).splitlines()[0]})", file=sys.stderr)
                return 2
        if (place := users_place(fault)) is not None:
            failed = f"{place} fails: {type(fault).__name__}: {fault}; this isn't t1x's code"
            print(f"error: {failed}; {_kept(fault, 'its traceback')}", file=sys.stderr)
            return 2
        traceback.print_exception(fault)
        print(f"error: this is a fault in t1x, not in what you gave it; {_kept(fault, 'its log')}", file=sys.stderr)
        return 1
    return 0


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return 130


def _message(mistake: Exception) -> str:
    if isinstance(mistake, OSError) and mistake.strerror and mistake.filename:
        said = f"{mistake.filename}: {mistake.strerror}"
    else:
        said = str(mistake) or type(mistake).__name__
    if type(mistake).__module__.partition(".")[0] == "t1x":
        return said
    from t1x.config.blame import users_place

    place = users_place(mistake)  # a library may have raised it, of which the text alone doesn't say where it was called
    return said if place is None else f"{said}, in {place}"


def _kept(fault: Exception, what: str) -> str:
    """Where the traceback is, for a reader."""
    import platform
    import tempfile

    from t1x import __version__

    text = "".join(traceback.format_exception(fault))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="t1x-fault-", suffix=".log", delete=False, encoding="utf-8") as log:
            log.write(f"t1x {__version__}, Python {platform.python_version()}, {platform.platform()}\n{sys.argv}\n\n{text}")
    except OSError as error:
        return f"{what} can't be kept ({error.strerror})"
    return f"{what} is {log.name}"

"""Turns what a command raises into a message and an exit code: the only place that does.

0 is success, 2 a mistake of the user's (one message, no traceback), 3 an experiment that needs what isn't here, 130 an
interruption, 141 one whose output nobody reads any more (as `head` ends), 1 a fault in t1x.
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
        from t1x.config.requirements import NotHere

        if isinstance(fault, NotHere):
            print(fault, file=sys.stderr)
            return 3
        for advice, said in EXHAUSTED.items():
            if said.search(str(fault)):
                print(f"error: {advice} ({str(fault).splitlines()[0]})", file=sys.stderr)
                return 2
        return _fault(fault)
    return 0


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return 130


def _message(mistake: Exception) -> str:
    if isinstance(mistake, OSError) and mistake.strerror and mistake.filename:
        return f"{mistake.filename}: {mistake.strerror}"
    return str(mistake) or type(mistake).__name__


def _fault(fault: Exception) -> int:
    import platform
    import tempfile

    from t1x import __version__

    text = "".join(traceback.format_exception(fault))
    print(text, file=sys.stderr, end="")
    try:
        with tempfile.NamedTemporaryFile("w", prefix="t1x-fault-", suffix=".log", delete=False, encoding="utf-8") as log:
            log.write(f"t1x {__version__}, Python {platform.python_version()}, {platform.platform()}\n{sys.argv}\n\n{text}")
        kept = f"its log is {log.name}"
    except OSError as error:
        kept = f"its log can't be kept ({error.strerror})"
    print(f"error: this is a fault in t1x, not in what you gave it; {kept}", file=sys.stderr)
    return 1

"""Reading a CTRF report that a verifier left, without believing more of it than it says.

Invariant: what is missing, cut off, contradictory or not a plain file is told apart by its cause and is never a pass.
"""

import json
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from t1x.grading.report import Cause, VerifierReport, unusable

_MAX_BYTES = 8 << 20
_STATUSES = ("passed", "failed", "skipped", "pending", "other")


def read_ctrf(path: Path, assertions: int | None) -> VerifierReport:
    """The report at `path`. `assertions` is how many the verifier is known to make; None where the pool doesn't know. Only a
    regular file is ever opened: a FIFO would block, a link would lead elsewhere."""
    try:
        return _read(path, assertions)
    except FileNotFoundError:
        return unusable("missing", "the verifier wrote no report")
    except OSError as error:
        return unusable("unparsable", f"it can't be read: {error.strerror}")


def _read(path: Path, assertions: int | None) -> VerifierReport:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return unusable("not_regular_file", f"a {_type(status.st_mode)} stands in the report's place")
    if status.st_size > _MAX_BYTES:
        return unusable("too_large", f"{status.st_size} bytes, at most {_MAX_BYTES} are read")
    with open(path, "rb", opener=lambda file, flags: os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as source:
        return parse_ctrf(source.read(_MAX_BYTES + 1), assertions)


def parse_ctrf(content: bytes, assertions: int | None) -> VerifierReport:
    """Parses a report's bytes; see `read_ctrf`."""
    if not content.strip():
        return unusable("empty", f"{len(content)} bytes, none of them text")
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        cause: Cause = "truncated" if _ends_early(error) else "unparsable"
        return unusable(cause, f"{error.msg} at character {error.pos} of {len(error.doc)}")
    except UnicodeDecodeError as error:
        return unusable("truncated" if error.reason == "unexpected end of data" else "unparsable", str(error))
    except (ValueError, RecursionError) as error:
        return unusable("unparsable", str(error))
    try:
        summary, tests = _tests(document)
    except _SchemaError as error:
        return unusable("bad_schema", str(error))
    return _judge(summary, tests, assertions)


def _judge(summary: dict[str, int], tests: list[tuple[str, str]], assertions: int | None) -> VerifierReport:
    repeated = [name for name, times in Counter(name for name, _ in tests).items() if times > 1]
    if repeated:
        return unusable("duplicate", f"assertion {repeated[0]!r} is reported more than once")
    counted = Counter(status for _, status in tests)
    found = {"tests": len(tests), **{status: counted[status] for status in _STATUSES}}
    for field, value in summary.items():
        if found[field] != value:
            return unusable("summary_mismatch", f"the summary says {field} = {value}, its entries say {found[field]}")
    if assertions is not None and len(tests) != assertions:
        return unusable("test_set_mismatch", f"{len(tests)} assertions are reported, the task has {assertions}")
    if not tests:
        return unusable("test_set_mismatch", "no assertion is reported")
    return VerifierReport(tuple((name, status == "passed") for name, status in tests))


class _SchemaError(ValueError):
    pass


def _tests(document: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """(the summary's counts, (name, status) of every entry)."""
    results = _get(document, "results", dict, "the document")
    summary = _get(results, "summary", dict, "results")
    required = {"tests", "passed", "failed"}
    counts = {name: _get(summary, name, int, "summary") for name in ("tests", *_STATUSES) if name in summary or name in required}
    tests = []
    for index, entry in enumerate(_get(results, "tests", list, "results")):
        name = _get(entry, "name", str, f"tests[{index}]")
        status = _get(entry, "status", str, f"tests[{index}]")
        if status not in _STATUSES:
            raise _SchemaError(f"tests[{index}] has the status {status!r}; there are {', '.join(_STATUSES)}")
        tests.append((name, status))
    return counts, tests


def _get(holder: Any, key: str, type_: type, where: str) -> Any:
    if not isinstance(holder, dict) or key not in holder:
        raise _SchemaError(f"{where} has no {key!r}")
    value = holder[key]
    if type(value) is not type_:
        raise _SchemaError(f"{key!r} of {where} is a {type(value).__name__}, not a {type_.__name__}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _ends_early(error: json.JSONDecodeError) -> bool:
    """Whether more text could have made it right."""
    rest = error.doc[error.pos :]
    in_a_word = any(word.startswith(rest) for word in ("true", "false", "null", "-"))
    in_an_escape = "escape" in error.msg and len(rest) < 6
    return not rest.strip() or in_a_word or in_an_escape or error.msg.startswith("Unterminated string")


def _type(mode: int) -> str:
    names = {stat.S_IFIFO: "FIFO", stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "folder", stat.S_IFSOCK: "socket"}
    return names.get(stat.S_IFMT(mode), "device")

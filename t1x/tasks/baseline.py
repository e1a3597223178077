"""Which assertions of a synthetic task hold before the agent acts, told from its files alone: `verify.py` without a folder.

Invariant: on a work folder that holds just these files, plain and with mode 644, it says what `verify.py` would.
"""

import io
import tarfile
from collections.abc import Mapping, Sequence

from t1x.tasks.assertions import EVERY, Assertion
from t1x.tasks.verify import LARGEST

_MODE = 0o644


def baseline(assertions: Sequence[Assertion], files: Mapping[str, bytes], per_assertion: bool = True) -> frozenset[str]:
    """Names, as the report has them, of the assertions that hold where the work folder has these files and nothing else."""
    folders = {path[:cut] for path in files for cut, letter in enumerate(path) if letter == "/"}
    held = frozenset(each.name for each in assertions if _holds(each, files, folders))
    if per_assertion:
        return held
    return frozenset({EVERY} if len(held) == len(assertions) else ())


def _holds(each: Assertion, files: Mapping[str, bytes], folders: set[str]) -> bool:
    is_file = each.path in files
    there = is_file or each.path in folders
    parents = {each.path[:cut] for cut, letter in enumerate(each.path) if letter == "/"}
    if each.kind == "absent":
        return not there and not parents & files.keys()  # below a file nothing can be looked for
    if each.kind == "directory":
        return each.path in folders
    if each.kind == "listing":
        return each.path in folders and each.expected == tuple(sorted(_entries(each.path, [*files, *folders])))
    if not is_file:
        assert each.kind != "mode" or not there, f"{each.name}: the mode of a folder that the sandbox makes isn't known"
        return False
    if each.kind in ("file", "mode"):
        return each.kind == "file" or each.expected == _MODE
    assert each.kind != "output", f"{each.name}: what a script prints isn't known without running it; let the agent write it"
    return each.kind not in ("link", "link_target") and len(files[each.path]) <= LARGEST and _reads(each, files[each.path])


def _entries(folder: str, paths: Sequence[str]) -> set[str]:
    return {path.removeprefix(f"{folder}/").split("/")[0] for path in paths if path.startswith(f"{folder}/")}


def _reads(each: Assertion, body: bytes) -> bool:
    """Whether an assertion about a file's content holds."""
    match each.kind, each.expected:
        case "content", str(text):
            return body == text.encode()
        case "contains", str(text):
            return text.encode() in body
        case "line_count", int(count):
            return body.count(b"\n") == count
        case "tar_members", tuple(names):
            return _members(body) == names
    raise AssertionError(f"no such kind of assertion: {each!r}")


def _members(body: bytes) -> tuple[str, ...] | None:
    """The regular files of an uncompressed tar archive; None where it is none."""
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            return tuple(sorted(member.name.removeprefix("./") for member in archive if member.isfile()))
    except tarfile.TarError:
        return None

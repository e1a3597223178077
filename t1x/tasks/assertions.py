"""What a held-out verifier can assert about a work folder; `verify.py` holds the check of each kind."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assertion:
    """One entry of the CTRF report."""

    kind: str
    path: str
    """Relative to the work folder; never followed through a symbolic link."""
    expected: str | int | tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Unique in its task."""
        return f"{self.kind} {self.path}"


def file(path: str) -> Assertion:
    """A regular file is there."""
    return Assertion("file", path)


def absent(path: str) -> Assertion:
    """Nothing is there, not even a dangling link."""
    return Assertion("absent", path)


def directory(path: str) -> Assertion:
    """A directory is there."""
    return Assertion("directory", path)


def listing(path: str, names: Sequence[str]) -> Assertion:
    """The directory holds exactly these entries."""
    return Assertion("listing", path, tuple(sorted(names)))


def content(path: str, text: str) -> Assertion:
    """The file holds exactly this text."""
    return Assertion("content", path, text)


def contains(path: str, text: str) -> Assertion:
    """The file holds this text somewhere."""
    return Assertion("contains", path, text)


def line_count(path: str, count: int) -> Assertion:
    """The file has this many lines."""
    return Assertion("line_count", path, count)


def mode(path: str, bits: str) -> Assertion:
    """The permission bits, in octal as `chmod` takes them."""
    return Assertion("mode", path, int(bits, 8))


def link(path: str) -> Assertion:
    """A symbolic link is there."""
    return Assertion("link", path)


def link_target(path: str, target: str) -> Assertion:
    """The text of the symbolic link."""
    return Assertion("link_target", path, target)


def tar_members(path: str, names: Sequence[str]) -> Assertion:
    """The regular files in an uncompressed tar archive."""
    return Assertion("tar_members", path, tuple(sorted(names)))


def output(path: str, text: str) -> Assertion:
    """What the script prints when bash runs it in the work folder."""
    return Assertion("output", path, text)


EVERY = "every assertion"
"""Name of the one entry of a verifier that says only whether all assertions hold."""


def to_json(assertions: Sequence[Assertion], per_assertion: bool = True) -> bytes:
    """The content of `assertions.json`; without `per_assertion`, one entry that passes only where all of them hold. Text stays
    unescaped, so that every JSON string is a Python literal too."""
    assert len({a.name for a in assertions}) == len(assertions), "two assertions of a task share a name"
    rows: list[dict[str, Any]] = [{"name": a.name, "kind": a.kind, "path": a.path, "expected": a.expected} for a in assertions]
    if not per_assertion:
        rows = [{"name": EVERY, "kind": "every", "path": ".", "expected": rows}]
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()

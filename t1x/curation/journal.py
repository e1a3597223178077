"""What a check has found so far, kept as it comes beside the manifest.

Invariant: a line is whole or it isn't there, so a check that was killed at any moment goes on from what it had.
"""

import fcntl
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from t1x.tasks.manifest import VERSION, Entry, Settings

_HEADER = f'{{"version": {VERSION}, '.encode()
"""How the first line begins."""


def journal_of(manifest: Path) -> Path:
    """Where it lies."""
    return manifest.with_name(f"{manifest.name}.journal")


def kept(manifest: Path) -> dict[str, Entry]:
    """What a check that hasn't ended has found so far, by name of the task; its journal stays as it is. Raises `OSError`."""
    try:
        header, *lines = journal_of(manifest).read_bytes().splitlines() or [b""]
    except FileNotFoundError:
        return {}
    return _entries(lines) if header.startswith(_HEADER) else {}


class Journal:
    """Entries in the order in which they came. One process at a time holds it."""

    def __init__(self, path: Path, settings: Settings, fresh: bool = False) -> None:
        """Opens it, or begins it anew where that is asked for or it was written under other settings. Raises `ValueError`
        where another check is running or the file can't be written."""
        self.path = path
        self.entries: dict[str, Entry] = {}
        """By name of the task."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise ValueError(f"{path}: can't be written ({error.strerror}); name a manifest elsewhere with --out") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"{path}: another check of this pool is running; wait for its end") from None
        self._resume(_line({"version": VERSION, "settings": settings.model_dump()}), fresh)

    def close(self) -> None:
        """Lets the next check have it."""
        self._file.close()

    def add(self, name: str, entry: Entry) -> None:
        """One more."""
        self._file.write(_line({"name": name, "entry": entry.model_dump()}))

    def remove(self) -> None:
        """When all of it stands in the manifest."""
        self.path.unlink(missing_ok=True)

    def _resume(self, header: bytes, fresh: bool) -> None:
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        if fresh or not lines or lines[0] != header:
            self._file.truncate(0)
            self._file.write(header)
            return
        self._file.truncate(sum(map(len, lines)))
        self.entries |= _entries(lines[1:])


class _Row(BaseModel):
    name: str
    entry: Entry


def _entries(lines: Iterable[bytes]) -> dict[str, Entry]:
    found = {}
    for line in lines:
        with suppress(ValidationError):  # what a full disk or a kill left of one
            row = _Row.model_validate_json(line)
            found[row.name] = row.entry
    return found


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"

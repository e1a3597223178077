"""Trials on disk: a Parquet file a rollout batch, a row a trial.

Invariants:
- a file has its name only when all of it is on disk;
- neither writing nor reading holds more than a group of rows and one trial in memory;
- what is read is what was written: a file that was damaged, cut off, or written by another program or format is refused.

Any Parquet reader opens the files; `storage_row.SCHEMA` says what the columns are.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from t1x.model.durable import sync
from t1x.trajectory.storage_row import SCHEMA, Row, checksum, from_row, from_table, to_row, to_table
from t1x.trajectory.storage_summary import SUMMARY_COLUMNS, TrialSummary, summary_of
from t1x.trajectory.stored import StoredTrial

FORMAT = 1
"""Of the rows; another one is refused."""
WRITING = ".writing-"
"""Begins the name of a file that isn't whole yet."""
GROUP = 16 * 2**20
"""Bytes of uncompressed rows after which a group of rows is written."""
_KEY = b"t1x"


class TrialFileError(ValueError):
    """A file of trials that can't be read."""


@dataclass(frozen=True, slots=True)
class TrialFile:
    """What a file says of itself."""

    path: Path
    identity: Mapping[str, str]
    """Whose trials these are; what the writer was given."""
    routing: bool
    """Whether routing was kept; else every record has 0 layers."""
    trials: int
    t1x: str
    """Version that wrote it."""


class TrialWriter:
    """Writes a file, trial by trial; used as a context, whose end gives the file its name. One that is left by an exception leaves
    nothing, and a file of that name as it was."""

    def __init__(self, path: Path, identity: Mapping[str, str], routing: bool = True) -> None:
        """`identity` says whose trials these are. Raises `OSError`."""
        self._path, self._identity, self._routing = path, dict(identity), routing
        path.parent.mkdir(parents=True, exist_ok=True)
        self._draft = path.with_name(f"{WRITING}{path.name}")
        self._file = pq.ParquetWriter(
            self._draft,
            SCHEMA,
            compression="zstd",
            use_dictionary=["id", "task", "ended_by"],
            write_statistics=False,
            write_page_checksum=True,
        )
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._ids: set[str] = set()
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def add(self, trial: StoredTrial) -> None:
        """Raises `ValueError` for a trial whose streams disagree or whose id was written before, `OSError` where there is no
        room."""
        if trial.id in self._ids:
            raise ValueError(f"two trials of {self._path.name} have the id {trial.id}")
        try:
            table = to_table([to_row(trial, self._routing)])
        except ValueError as error:
            raise ValueError(f"trial {trial.id} can't be stored: {error}") from error
        self._ids.add(trial.id)
        self._digest.update(table["checksum"][0].as_py())
        self._pending.append(table)
        self._pending_bytes += table.nbytes
        if self._pending_bytes >= GROUP:
            self._flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self._flush()
                self._file.add_key_value_metadata({_KEY: self._header()})
            self._file.close()
            if error is None:
                sync(self._draft)
                self._draft.replace(self._path)
                sync(self._path.parent)
        finally:
            self._draft.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._pending:
            self._file.write_table(pa.concat_tables(self._pending))
        self._pending, self._pending_bytes = [], 0

    def _header(self) -> bytes:
        return _sealed(
            {
                "format": FORMAT,
                "t1x": version("t1x"),
                "identity": self._identity,
                "routing": self._routing,
                "trials": len(self._ids),
                "digest": self._digest.hexdigest(),
            }
        )


def remove_interrupted(folder: Path) -> None:
    """Removes what a killed process left half written."""
    for left in folder.glob(f"{WRITING}*"):
        left.unlink()


def read_header(path: Path) -> TrialFile:
    """What a file says of itself. Raises `TrialFileError`, `FileNotFoundError`."""
    with _opened(path) as (_, header):
        return _told(path, header)


def read_trials(path: Path) -> Iterator[StoredTrial]:
    """All trials, in order, one at a time. Raises `TrialFileError`, also after trials that were sound, and `FileNotFoundError`."""
    with _opened(path) as (file, header):
        digest, count = hashlib.sha256(), 0
        for group in range(file.num_row_groups):
            for row in _rows(path, file, group):
                digest.update(row["checksum"])
                yield _trial(path, count, row)
                count += 1
        if count != header["trials"] or digest.hexdigest() != header["digest"]:
            raise _damaged(path, f"it has {count} rows, but not the {header['trials']} that were written")


def read_trial(path: Path, trial_id: str) -> StoredTrial | None:
    """The trial of this id, or None; of the others hardly more than their ids is read. Raises `TrialFileError`,
    `FileNotFoundError`."""
    with _opened(path) as (file, _):
        count = 0
        for group in range(file.num_row_groups):
            ids = [row["id"] for row in _rows(path, file, group, ["id"])]
            if trial_id in ids:
                at = ids.index(trial_id)
                return _trial(path, count + at, _rows(path, file, group, at=at)[0])
            count += len(ids)
    return None


def read_ids(path: Path) -> list[str]:
    """The ids of all trials, in order. Raises `TrialFileError`, `FileNotFoundError`."""
    with _opened(path) as (file, _):
        return [row["id"] for group in range(file.num_row_groups) for row in _rows(path, file, group, ["id"])]


def read_summaries(path: Path) -> list[TrialSummary]:
    """What a list of the trials tells, in order; neither prompts nor routing are read. Raises `TrialFileError`,
    `FileNotFoundError`."""
    with _opened(path) as (file, _):
        groups = (_rows(path, file, group, list(SUMMARY_COLUMNS)) for group in range(file.num_row_groups))
        return [summary_of(row) for rows in groups for row in rows]


def _trial(path: Path, index: int, row: Row) -> StoredTrial:
    where = f"row {index} (trial {row['id']!r})"
    if checksum(row) != row["checksum"]:
        raise _damaged(path, f"{where} has changed since it was written")
    try:
        return from_row(row)
    except ValueError as error:
        raise _damaged(path, f"{where}: {error}") from error


def _rows(path: Path, file: pq.ParquetFile, group: int, columns: list[str] | None = None, at: int | None = None) -> list[Row]:
    """Rows of a group, or the one at a place in it; all columns or these."""
    with _readable(path, f"group {group} of its rows"):
        table = file.read_row_group(group, columns)
        return from_table(table if at is None else table.slice(at, 1))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, dict[str, Any]]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with _readable(path, "its end"):
        file = pq.ParquetFile(path, page_checksum_verification=True)
    with file:
        yield file, _header(path, file)


def _header(path: Path, file: pq.ParquetFile) -> dict[str, Any]:
    sealed = (file.metadata.metadata or {}).get(_KEY)
    if sealed is None:
        raise TrialFileError(f"{path} isn't a file of trials that t1x wrote; remove it from there")
    try:
        header: dict[str, Any] = json.loads(sealed)
        if header["format"] != FORMAT:
            raise TrialFileError(
                f"{path} has format {header['format']} (t1x {header['t1x']} wrote it), this t1x ({version('t1x')}) reads {FORMAT}; "
                f"read it with that version"
            )
        content = {name: value for name, value in header.items() if name != "checksum"}
    except (UnicodeDecodeError, json.JSONDecodeError, LookupError, AttributeError, TypeError) as error:
        raise _damaged(path, "what it says of itself can't be read") from error
    if sealed != _sealed(content):
        raise _damaged(path, "what it says of itself has changed")
    if not file.schema_arrow.remove_metadata().equals(SCHEMA):
        raise _damaged(path, "its columns have changed")
    return header


def _told(path: Path, header: Mapping[str, Any]) -> TrialFile:
    return TrialFile(path, header["identity"], header["routing"], header["trials"], header["t1x"])


def _sealed(content: Mapping[str, Any]) -> bytes:
    return json.dumps({**content, "checksum": hashlib.sha256(json.dumps(content).encode()).hexdigest()}).encode()


@contextmanager
def _readable(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError, OverflowError) as error:
        raise _damaged(
            path, f"{what} can't be read ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        ) from error


def _damaged(path: Path, what: str) -> TrialFileError:
    return TrialFileError(f"{path} is damaged or cut off: {what}; use another file, or restore it from a copy")

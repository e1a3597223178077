"""Writing trials to disk: a Parquet file a rollout batch, a row a trial.

Invariants:
- a file has its name only when all of it is on disk;
- no more than a group of rows and one trial is held in memory.

Any Parquet reader opens the files; `storage_table.SCHEMA` says what the columns are.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from t1x.model.durable import sync
from t1x.trajectory.storage_bounds import LARGEST, MOST_RECORDS
from t1x.trajectory.storage_header import KEY, Header
from t1x.trajectory.storage_row import to_row
from t1x.trajectory.storage_table import SCHEMA, to_table
from t1x.trajectory.stored import StoredTrial

WRITING = ".writing-"
"""Begins the name of a file that isn't whole yet."""
GROUP = 16 * 2**20
"""Bytes of uncompressed rows after which a group of rows is written."""


class TrialWriter:
    """Writes a file, trial by trial; used as a context, whose end gives the file its name. One that is left by an exception leaves
    nothing, and a file of that name as it was."""

    def __init__(self, path: Path, identity: Mapping[str, str], routing: bool = True) -> None:
        """`identity` says whose trials these are. Raises `OSError`."""
        self._path, self._identity, self._routing = path, dict(identity), routing
        path.parent.mkdir(parents=True, exist_ok=True)
        self._draft = path.with_name(f"{WRITING}{path.name}")
        self._file = _opened(self._draft)
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._ids: set[str] = set()
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def add(self, trial: StoredTrial) -> None:
        """Raises `ValueError` for a trial whose streams disagree, that is too large to be read, or whose id was written before,
        `OSError` where there is no room."""
        if trial.id in self._ids:
            raise ValueError(f"two trials of {self._path.name} have the id {trial.id}")
        with _storable(f"trial {trial.id}"):
            table = to_table([to_row(trial, self._routing)])
            if table.nbytes > LARGEST // 2:
                raise ValueError(f"it has {table.nbytes:,} bytes, but at most {LARGEST // 2:,} are kept")
            if len(self._ids) == MOST_RECORDS:
                raise ValueError(f"a file has at most {MOST_RECORDS:,} trials")
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
                header = Header(self._identity, self._routing, len(self._ids), self._digest.hexdigest())
                self._file.add_key_value_metadata({KEY: header.sealed()})
                self._file.close()
                sync(self._draft)
                self._draft.replace(self._path)
                sync(self._path.parent)
        finally:
            with suppress(Exception):  # what went wrong before is what is told
                self._file.close()
            self._draft.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._pending:
            with _storable(f"{len(self._pending)} trials"):
                self._file.write_table(pa.concat_tables(self._pending))
        self._pending, self._pending_bytes = [], 0


@contextmanager
def _storable(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"{what} can't be stored: {error}") from error


def _opened(draft: Path) -> pq.ParquetWriter:
    if draft.is_dir():
        raise IsADirectoryError(f"{draft} is a folder; remove it")
    try:
        return pq.ParquetWriter(
            draft,
            SCHEMA,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        )
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_interrupted(folder: Path) -> None:
    """Removes files that a killed process left half written."""
    for left in folder.glob(f"{WRITING}*"):
        if not left.is_dir():
            left.unlink()

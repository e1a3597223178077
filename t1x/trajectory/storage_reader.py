"""Reading trials from disk.

Invariants:
- what is read is what was written: a file that was damaged, cut off, or written by another program or format is refused;
- no more than a group of rows and one trial is held in memory, and a group that would take more than `storage_bounds` allows is
  refused before it's read.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from t1x.trajectory.storage_bounds import MOST_RECORDS, check_group
from t1x.trajectory.storage_folder import batch_file
from t1x.trajectory.storage_footer import Group, groups_of
from t1x.trajectory.storage_header import KEY, Header, TrialFileError, damaged, unsealed
from t1x.trajectory.storage_row import from_row
from t1x.trajectory.storage_summary import SUMMARY_COLUMNS, TrialSummary, summary_of
from t1x.trajectory.storage_table import SCHEMA, Row, checksum, from_table
from t1x.trajectory.stored import StoredTrial

_MAGIC = b"PAR1"
"""Both ends of a Parquet file."""


@dataclass(frozen=True, slots=True)
class _File:
    """One that is open."""

    path: Path
    file: pa.NativeFile
    parquet: pq.ParquetFile
    header: Header
    groups: Sequence[Group]

    def rows(self, group: int, columns: list[str] | None = None, at: int | None = None) -> list[Row]:
        """Rows of a group, or the one at a place in it; all columns or these."""
        with _readable(self.path, f"group {group} of its rows"):
            check_group(self.file, self.groups[group])
            table = self.parquet.read_row_group(group, columns)
            return from_table(table if at is None else table.slice(at, 1))

    def trial(self, index: int, row: Row) -> StoredTrial:
        where = _place(index, row)
        if checksum(row) != row["checksum"]:
            raise damaged(self.path, f"{where} has changed since it was written")
        with _readable(self.path, where):
            return from_row(row)


def read_header(path: Path) -> Header:
    """What a file says of itself. Raises `TrialFileError`, `FileNotFoundError`."""
    with _opened(path) as file:
        return file.header


def read_trials(path: Path) -> Iterator[StoredTrial]:
    """All trials, in order, one at a time. Raises `TrialFileError`, also after trials that were sound, and `FileNotFoundError`."""
    with _opened(path) as file:
        digest, count = hashlib.sha256(), 0
        for group in range(len(file.groups)):
            for row in file.rows(group):
                digest.update(row["checksum"])
                yield file.trial(count, row)
                count += 1
        if digest.hexdigest() != file.header.digest:
            raise damaged(path, f"its {count} rows aren't those that were written")


def read_trial(path: Path, trial_id: str) -> StoredTrial | None:
    """The trial of this id, or None; of the others hardly more than their ids is read. Raises `TrialFileError`,
    `FileNotFoundError`."""
    with _opened(path) as file:
        count = 0
        for group in range(len(file.groups)):
            ids = [row["id"] for row in file.rows(group, ["id"])]
            if trial_id in ids:
                at = ids.index(trial_id)
                return file.trial(count + at, file.rows(group, at=at)[0])
            count += len(ids)
    return None


def read_ids(path: Path) -> list[str]:
    """The ids of all trials, in order. Raises `TrialFileError`, `FileNotFoundError`."""
    with _opened(path) as file:
        return [row["id"] for group in range(len(file.groups)) for row in file.rows(group, ["id"])]


def read_summaries(path: Path) -> list[TrialSummary]:
    """What a list of the trials tells, in order; neither prompts nor routing are read. Raises `TrialFileError`,
    `FileNotFoundError`."""
    with _opened(path) as file:
        found: list[TrialSummary] = []
        for group in range(len(file.groups)):
            for row in file.rows(group, list(SUMMARY_COLUMNS)):
                with _readable(path, _place(len(found), row)):
                    found.append(summary_of(row))
    return found


def _place(index: int, row: Row) -> str:
    return f"row {index} (trial {row['id']!r})"


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with pa.OSFile(os.fsencode(path)) as file:  # opened once: a run may remove or replace it meanwhile
        if not file.size():
            raise damaged(path, "it is empty")
        if not _is_parquet(file):
            raise TrialFileError(f"{path} isn't a Parquet file of trials; a run's are in its folder `trajectories`")
        with _readable(path, "its end"):
            groups = groups_of(file)
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
        metadata = parquet.metadata
        header = unsealed(path, (metadata.metadata or {}).get(KEY))
        leaves = [
            (each.path, each.physical_type == "BYTE_ARRAY") for each in map(parquet.schema.column, range(metadata.num_columns))
        ]
        same = all([(each.path, each.text) for each in group.columns] == leaves for group in groups)
        if not same or not parquet.schema_arrow.remove_metadata().equals(SCHEMA):
            raise damaged(path, "its columns have changed")
        if (metadata.num_rows, metadata.num_row_groups) != (header.trials, len(groups)):
            raise damaged(path, f"it has {metadata.num_rows} rows, but not the {header.trials} that were written")
        if header.trials > MOST_RECORDS:
            raise damaged(path, f"it has {header.trials:,} rows, but at most {MOST_RECORDS:,} are read")
        own = batch_file(path)
        if own and (said := {**own.identity, **header.identity}) != {**said, **own.identity}:
            raise TrialFileError(
                f"{path} holds the trials of {said['purpose']} batch {said['step']}, not of {own.purpose} batch {own.at}; remove "
                f"it from there"
            )
        yield _File(path, file, parquet, header, groups)


def _is_parquet(file: pa.NativeFile) -> bool:
    """By either end, since a file that is cut off or damaged may have lost the other."""
    head = file.read(len(_MAGIC))
    file.seek(file.size() - len(head))
    return _MAGIC.startswith(head) or file.read() == _MAGIC


@contextmanager
def _readable(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except TrialFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError, OverflowError) as error:
        raise damaged(
            path, f"{what} can't be read ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        ) from error

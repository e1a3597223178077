"""Files of trials that aren't what was written are refused, and it's said which, where, and what to do."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from stored_trials import same, trial

from t1x.trajectory import storage_header, storage_writer
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_ids, read_summaries, read_trial, read_trials
from t1x.trajectory.storage_writer import TrialWriter

TRIALS = [trial(seed, turns=2, streams=1) for seed in range(3)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "train-1.parquet"
    with TrialWriter(path, {"run": "mine"}) as writer:
        for each in TRIALS:
            writer.add(each)
    return path


def content(path: Path) -> list:
    return [list(read_trials(path)), read_header(path)]


@promise
@given(place=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_changes_nothing(sound: Path, place: float, flipped: int) -> None:
    data = bytearray(sound.read_bytes())
    data[int(place * len(data))] ^= flipped
    changed = sound.with_name("flipped.parquet")
    changed.write_bytes(data)
    refused, read = "", None
    try:
        read = content(changed)
    except TrialFileError as error:
        refused = str(error)
    assert str(changed) in refused or same(read, content(sound))


@promise
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_off_is_refused(sound: Path, share: float) -> None:
    data = sound.read_bytes()
    short = sound.with_name("short.parquet")
    short.write_bytes(data[: int(share * len(data))])
    for read in (content, read_ids, read_summaries, lambda path: read_trial(path, "trial-1")):
        with pytest.raises(TrialFileError, match=r"short.parquet is damaged or cut off: its end can't be read.*use another file"):
            read(short)


def rewritten(sound: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """The same file with other rows."""
    table, said = pq.read_table(sound), pq.read_metadata(sound).metadata[b"t1x"]
    path = sound.with_name("rewritten.parquet")
    schema = table.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        writer.write_table(change(table).cast(schema))
        writer.add_key_value_metadata({"t1x": said})
    return path


def test_rewritten_as_it_was_it_is_read(sound: Path) -> None:
    """So that what the other tests change is what is refused."""
    assert same(content(rewritten(sound, lambda table: table)), content(sound))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.slice(0, 2), "it has 2 rows, but not the 3 that were written"),
        (lambda table: table.take([0, 2, 1]), "it has 3 rows, but not the 3 that were written"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "it has 4 rows, but not the 3 that were written"),
        (
            lambda table: table.set_column(3, "reward", pa.array([0.0, 0.0, 0.0])),
            "row 0 (trial 'trial-0') has changed since it was written",
        ),
        (
            lambda table: table.set_column(7, "checksum", table["checksum"].take([0, 0, 2])),
            "row 1 (trial 'trial-1') has changed since it was written",
        ),
        (
            lambda table: table.drop_columns(["task"]).append_column("task", table["task"]).select(table.column_names[::-1]),
            "columns",
        ),
    ],
    ids=["fewer rows", "other order", "more rows", "other value", "other checksum", "other columns"],
)
def test_other_rows_are_refused(sound: Path, change: Callable[[pa.Table], pa.Table], said: str) -> None:
    if said == "columns":
        path = sound.with_name("columns.parquet")
        table, told = pq.read_table(sound), pq.read_metadata(sound).metadata[b"t1x"]
        pq.write_table(change(table).replace_schema_metadata({"t1x": told}), path)
    else:
        path = rewritten(sound, change)
    with pytest.raises(TrialFileError, match=re.escape(said)):
        list(read_trials(path))


def test_trials_before_the_damage_are_given(sound: Path) -> None:
    path = rewritten(sound, lambda table: table.set_column(7, "checksum", table["checksum"].take([0, 1, 1])))
    read = read_trials(path)
    assert same([next(read), next(read)], TRIALS[:2])
    with pytest.raises(TrialFileError, match="row 2"):
        next(read)


def test_rows_that_disagree_are_refused_though_their_checksum_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a writer that was wrong."""
    to_row = storage_writer.to_row

    def write(change: Callable[[dict], None]) -> Path:
        def changed(*arguments) -> dict:
            row = to_row(*arguments)
            change(row)
            return row

        monkeypatch.setattr(storage_writer, "to_row", changed)
        path = tmp_path / "wrong.parquet"
        with TrialWriter(path, {}) as writer:
            writer.add(TRIALS[0])
        return path

    def one_row_less(row: dict) -> None:
        experts = row["turns"][0]["routing"]
        width = experts["layers"] * experts["k"]
        experts.update(rows=experts["rows"] - 1, data=experts["data"][width:])

    def shorter_mask(row: dict) -> None:
        row["trajectories"][0]["loss_mask"] = row["trajectories"][0]["loss_mask"][1:]

    def kept_too_much(row: dict) -> None:
        row["turns"][0]["kept"] = 5

    def other_rows(row: dict) -> None:
        row["trajectories"][0]["routing_parts"] = np.array([0, 1], np.int64)
        row["trajectories"][0]["routing"].update(rows=0, data=b"")

    def bytes_missing(row: dict) -> None:
        row["turns"][0]["routing"]["data"] = row["turns"][0]["routing"]["data"][1:]

    def no_boundary(row: dict) -> None:
        row["trajectories"][0]["boundaries"] = ["sharp"]

    for change, said in {
        one_row_less: r"turn 0: its routing is short",
        shorter_mask: r"trajectory 0: loss_mask are bool",
        kept_too_much: r"5 first elements of 0 aren't there",
        other_rows: r"trajectory 0: its streams disagree: .*, 1 routing rows",
        bytes_missing: r"cannot reshape|buffer size",
        no_boundary: r"'sharp' is not a valid Boundary",
    }.items():
        path = write(change)
        with pytest.raises(TrialFileError, match=rf"wrong.parquet is damaged .*row 0 \(trial 'trial-0'\): .*({said})"):
            list(read_trials(path))


def test_another_format_is_refused_by_its_number(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_header, "FORMAT", 2)
    for read in (content, read_ids, read_header):
        with pytest.raises(
            TrialFileError, match=r"has format 1 \(t1x .* wrote it\), this t1x .* reads 2; read it with that version"
        ):
            read(sound)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"trials: 3\n" * 100], ids=["empty", "magic", "text"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train-1.parquet"
    path.write_bytes(data)
    with pytest.raises(TrialFileError, match=r"train-1.parquet is damaged or cut off"):
        list(read_trials(path))


def test_what_another_program_wrote_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train-1.parquet"
    pq.write_table(pa.table({"id": ["a"]}), path)
    with pytest.raises(TrialFileError, match=r"isn't a file of trials that t1x wrote"):
        list(read_trials(path))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*train-9"):
        read_ids(tmp_path / "train-9.parquet")

"""Files of trials that aren't what was written are refused, and it's said which, where, and what to do."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import promise
from stored_trials import crafted, same, trial

from t1x.trajectory import storage_header, storage_search, storage_writer
from t1x.trajectory.storage_folder import BatchFile, batch_files, batch_path
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_ids, read_summaries, read_trial, read_trials
from t1x.trajectory.storage_search import find_trial, stored_batches
from t1x.trajectory.storage_writer import TrialWriter

some = settings(promise, max_examples=promise.max_examples // 4)
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
        with pytest.raises(
            TrialFileError, match=r"short.parquet is damaged or cut off: (its end can't be read|it is empty).*use another file"
        ):
            read(short)


def rewritten(sound: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """The same file with other rows."""
    table, said = pq.read_table(sound), pq.read_metadata(sound).metadata[b"t1x"]
    path = sound.with_name("rewritten.parquet")
    schema = table.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, write_statistics=False) as writer:
        writer.write_table(change(table).cast(schema))
        writer.add_key_value_metadata({"t1x": said})
    return path


def test_a_file_that_is_rewritten_as_it_was_is_read(sound: Path) -> None:
    """So that what the other tests change is what is refused."""
    assert same(content(rewritten(sound, lambda table: table)), content(sound))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.slice(0, 2), "it has 2 rows, but not the 3 that were written"),
        (lambda table: table.take([0, 2, 1]), "its 3 rows aren't those that were written"),
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


def one_row_less(row: dict) -> None:
    experts = row["turns"][0]["routing"]
    width = experts["layers"] * experts["k"]
    experts.update(rows=experts["rows"] - 1, data=experts["data"][width:])


def in_turn(name: str, value: object) -> Callable[[dict], None]:
    return lambda row: row["turns"][0].update({name: value})


def in_trajectory(name: str, value: object) -> Callable[[dict], None]:
    return lambda row: row["trajectories"][0].update({name: value})


def in_experts(**values: object) -> Callable[[dict], None]:
    return lambda row: row["turns"][0]["routing"].update(values)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (one_row_less, "turn 0: its routing is short"),
        (in_trajectory("loss_mask", np.zeros(2, np.bool_)), "trajectory 0: loss_mask are bool"),
        (in_turn("kept", 5), "5 first elements of 0 aren't there"),
        (in_turn("kept", -1), "-1 first elements of 0 aren't there"),
        (in_trajectory("routing_parts", numbers(0, 1)), "the parts of its routing don't make up"),
        (in_trajectory("routing_parts", np.tile(numbers(0, 20), 50_000)), "the parts of its routing don't make up"),
        (in_trajectory("routing_parts", numbers(0, 0)), "the parts of its routing don't make up"),
        (in_trajectory("routing_parts", numbers(1, 2, 3)), "cannot reshape"),
        (in_experts(data=b"12345"), r"experts [rows, layers, k] = .* aren't 5 bytes"),
        (in_experts(rows=-1), r"experts [rows, layers, k] = [-1, 2, 2] of 1 bytes"),
        (in_experts(rows=2**62, layers=0, k=0, data=b""), "turn 0: its routing is long"),
        (in_experts(rows=2**62, layers=2**62, k=2**62), r"experts [rows, layers, k] = [46"),
        (in_experts(bytes=3), "experts have 3 bytes each"),
        (in_trajectory("boundaries", ["sharp"]), "'sharp' is not a valid Boundary"),
        (in_trajectory("boundaries", ["\x1b[31m"]), r"'\x1b[31m' is not a valid Boundary"),
        (in_trajectory("substituted_rows", numbers(10**9)), "its substituted rows aren't in order"),
        (in_trajectory("substituted_rows", numbers(-5)), "its substituted rows aren't in order"),
        (in_trajectory("substituted_rows", numbers(1, 1)), "its substituted rows aren't in order"),
        (in_trajectory("versions", numbers(0, 10**9, 1)), "version 1 is that of tokens [0, 1000000000)"),
        (in_trajectory("versions", numbers(-5, 1, 2)), "version 2 is that of tokens [-5, 1)"),
        (in_trajectory("versions", numbers(0, 1)), "cannot reshape"),
        (in_turn("ids", np.array([-7], np.int32)), "turn 0: ids have -7 among them"),
        (in_turn("prompt_ids", np.array([-7], np.int32)), "turn 0: prompt_ids have -7 among them"),
        (in_trajectory("token_ids", np.full(6, -7, np.int32)), "trajectory 0: token_ids have -7 among them"),
        (in_turn("finish_reason", "\x1b[31mboo"), r"turn 0: finish_reason is '\x1b[31mboo', not one of stop, length, abort"),
        (lambda row: row.update(ended_by="\x1b]0;x\x07"), r"it ended by '\x1b]0;x\x07', but trials end by done, "),
    ],
)
def test_rows_are_refused_though_their_checksum_is_right(tmp_path: Path, change: Callable[[dict], None], said: str) -> None:
    path = crafted(tmp_path / "wrong.parquet", change)
    pattern = re.escape(said).replace(r"\.\*", ".*")
    with pytest.raises(TrialFileError, match=rf"wrong.parquet is damaged .*row 0 \(trial 'trial-0'\) can't be read \(.*{pattern}"):
        list(read_trials(path))


def test_summaries_of_such_rows_are_refused_as_far_as_they_show_them(tmp_path: Path) -> None:
    for change in (lambda row: row.update(ended_by="\x1b[31m"), in_trajectory("boundaries", ["sharp"])):
        with pytest.raises(TrialFileError, match=r"wrong.parquet is damaged .*row 0 \(trial 'trial-0'\) can't be read \("):
            read_summaries(crafted(tmp_path / "wrong.parquet", change))


@some
@given(place=st.floats(0, 1, exclude_max=True), width=st.integers(1, 200), seed=st.integers(0, 2**32 - 1))
def test_whatever_is_damaged_is_refused_by_every_reader(sound: Path, place: float, width: int, seed: int) -> None:
    data = bytearray(sound.read_bytes())
    at = int(place * len(data))
    data[at : at + width] = np.random.default_rng(seed).bytes(width)
    changed = sound.with_name("changed.parquet")
    changed.write_bytes(data)
    for read in (content, read_ids, read_summaries, lambda path: read_trial(path, "trial-1")):
        read = refusable(read)
        assert isinstance(read(changed), str) or same(read(changed), read(sound))


def refusable(read: Callable[[Path], object]) -> Callable[[Path], object]:
    def refused(path: Path) -> object:
        try:
            return read(path)
        except TrialFileError as error:
            return str(error)

    return refused


@some
@given(data=st.data())
def test_damaged_names_of_columns_are_refused(sound: Path, data: st.DataObject) -> None:
    """Also where Arrow's own copy of the names is whole."""
    raw = bytearray(sound.read_bytes())
    name = data.draw(st.sampled_from([b"index", b"loss_mask", b"boundaries", b"turns", b"id", b"reward", b"element", b"list"]))
    places = [found.start() for found in re.finditer(re.escape(name), raw)]
    at = data.draw(st.sampled_from(places)) + data.draw(st.integers(0, len(name) - 1))
    raw[at] = data.draw(st.sampled_from(b"xyz\x00"))
    changed = sound.with_name("names.parquet")
    changed.write_bytes(raw)
    for read in (content, read_ids, read_summaries):
        read = refusable(read)
        assert isinstance(read(changed), str) or same(read(changed), read(sound))


def test_a_header_that_says_another_thing_is_refused_and_has_no_effect_in_a_terminal(sound: Path) -> None:
    table, said = pq.read_table(sound), json.loads(pq.read_metadata(sound).metadata[b"t1x"])
    del said["checksum"]
    for changes, told in (
        ({"format": "\x1b[31m99"}, "can't be read"),
        ({"t1x": "\x1b]0;pwned\x07", "format": 99}, "can't be read"),
        ({"t1x": "9\nerror: run this", "format": 99}, "can't be read"),
        ({"format": 99}, "has format 99"),
        ({"trials": "3"}, "can't be read"),
        ({"trials": -3}, "can't be read"),
        ({"trials": 10**30}, f"it has 3 rows, but not the {10**30}"),
        ({"identity": "x"}, "can't be read"),
        ({"identity": {"a": 1}}, "can't be read"),
        ({"routing": None}, "can't be read"),
        ({"more": 1}, "has changed"),
    ):
        content = {**said, **changes}
        sealed = json.dumps({**content, "checksum": hashlib.sha256(json.dumps(content).encode()).hexdigest()})
        with pytest.raises(TrialFileError, match=told) as refused:
            read_header(with_header(sound, table, sealed.encode()))
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", str(refused.value))
    for sealed in (b"", b"{}", b"[" * 100_000, b"\xff", b"null"):
        with pytest.raises(TrialFileError, match="can't be read"):
            read_header(with_header(sound, table, sealed))


def with_header(sound: Path, table: pa.Table, sealed: bytes) -> Path:
    path = sound.with_name("header.parquet")
    with pq.ParquetWriter(path, table.schema.remove_metadata()) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({"t1x": sealed})
    return path


def test_what_an_error_quotes_has_no_effect_in_a_terminal() -> None:
    assert str(TrialFileError("a\x1b[31m\u202eb")) == "a^[[31m<U+202E>b"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three batches of a run, as a campaign's store writes them."""
    return batches(tmp_path / "mine", "1.5")


def batches(folder: Path, started: str) -> Path:
    for step in range(1, 4):
        identity = {"run": folder.name, "started": started, "purpose": "train", "step": str(step)}
        with TrialWriter(batch_path(folder, "train", step), identity) as writer:
            writer.add(trial(step))
    return folder


def test_a_file_under_another_batchs_name_is_refused_and_the_others_are_read(run: Path, tmp_path: Path) -> None:
    one, two = batch_path(run, "train", 1), batch_path(run, "train", 2)
    two.write_bytes(one.read_bytes())
    for read in (content, read_ids, read_summaries, read_header, lambda path: read_trial(path, "trial-1")):
        with pytest.raises(
            TrialFileError, match=r"train-2.parquet holds the trials of train batch 1, not of train batch 2; remove"
        ):
            read(two)
    warnings: list[str] = []
    assert find_trial(run, "1.5", "trial-1", None, None, warnings.append).path == one
    assert len(warnings) == 1
    elsewhere = tmp_path / "train-2.parquet"
    elsewhere.write_bytes(one.read_bytes())
    assert read_ids(elsewhere) == ["trial-1"], "outside a run's folder a file may have any name"


def test_files_of_other_runs_are_refused(run: Path, tmp_path: Path) -> None:
    other = batches(tmp_path / "other", "2.5")
    batch_path(run, "train", 2).write_bytes(batch_path(other, "train", 2).read_bytes())
    with pytest.raises(ValueError, match=r"mine/trajectories holds trials of other runs \(train-2 of other\); remove those from"):
        stored_batches(run, "1.5")
    batch_path(run, "train", 2).unlink()
    renamed = run.rename(tmp_path / "renamed")
    batch_path(renamed, "train", 3).write_bytes(b"damaged")
    assert [file.name for file in stored_batches(renamed, "1.5")] == ["train-1", "train-3"]


def test_a_run_that_has_files_of_another_one_only_is_told(run: Path) -> None:
    searches = (lambda: stored_batches(run, "9.5"), lambda: find_trial(run, "9.5", "trial-1", None, None, lambda _: None))
    for search in searches:
        with pytest.raises(ValueError, match=r"holds trials of other runs \(train-1, train-2, train-3 of mine\); remove those"):
            search()


def test_another_format_is_refused_by_its_number(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_header, "FORMAT", 9)
    for read in (content, read_ids, read_header):
        with pytest.raises(
            TrialFileError, match=r"has format \d \(t1x .* wrote it\), this t1x .* reads 9; read it with that version"
        ):
            read(sound)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is damaged or cut off: it is empty; use another file"),
        (b"PAR1", r"is damaged or cut off: its end can't be read \(it has 4 bytes\)"),
        (b"trials: 3\n" * 100, "isn't a Parquet file of trials"),
        (b"\0" * 100 + b"PAR1", "is damaged or cut off"),
    ],
    ids=["empty", "magic", "text", "end"],
)
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "train-1.parquet"
    path.write_bytes(data)
    with pytest.raises(TrialFileError, match=f"train-1.parquet {said}"):
        list(read_trials(path))


def test_what_another_program_wrote_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train-1.parquet"
    pq.write_table(pa.table({"id": ["a"]}), path)
    with pytest.raises(TrialFileError, match=r"isn't a file of trials that t1x wrote"):
        list(read_trials(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*train-9"):
        read_ids(tmp_path / "train-9.parquet")


def test_files_that_a_run_removes_meanwhile_are_passed_over(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pruned(folder: Path) -> list[BatchFile]:
        files = batch_files(folder)
        batch_path(folder, "train", 1).unlink(missing_ok=True)
        return files

    monkeypatch.setattr(storage_search, "batch_files", pruned)
    assert [file.name for file in stored_batches(run, "1.5")] == ["train-2", "train-3"]


def test_a_file_that_goes_while_a_trial_is_looked_for_is_passed_over(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = storage_search.read_ids

    def pruned(path: Path) -> list[str]:
        batch_path(run, "train", 1).unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(storage_search, "read_ids", pruned)
    warnings: list[str] = []
    assert find_trial(run, "1.5", "trial-3", None, None, warnings.append).name == "train-3"
    with pytest.raises(ValueError, match="has no trial 'trial-1'"):
        find_trial(run, "1.5", "trial-1", None, None, warnings.append)
    assert not warnings


def test_a_file_that_goes_while_it_is_read_is_read_to_its_end(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_writer, "GROUP", 1)
    trials = read_trials(path := batch_path(run, "train", 1))
    with TrialWriter(path, {"purpose": "train", "step": "1"}) as writer:
        for seed in range(4, 6):
            writer.add(trial(seed))
    assert [each.id for each in trials] == ["trial-4", "trial-5"]
    trials = read_trials(path)
    assert next(trials).id == "trial-4"
    path.unlink()
    assert [each.id for each in trials] == ["trial-5"]

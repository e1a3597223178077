"""Trials that come back from disk as they were, and files that don't pass for what they aren't."""

import dataclasses
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import promise
from random_turns import layouts, plans
from stored_trials import same, stitched, trial

from t1x.trajectory import storage_writer
from t1x.trajectory.records import Boundary, VersionSpan
from t1x.trajectory.storage_folder import batch_files, batch_path, strangers
from t1x.trajectory.storage_reader import read_header, read_ids, read_summaries, read_trial, read_trials
from t1x.trajectory.storage_row import from_row, to_row
from t1x.trajectory.storage_table import checksum, from_table, to_table
from t1x.trajectory.storage_writer import TrialWriter, remove_interrupted
from t1x.trajectory.stored import StoredTrial

few = settings(promise, max_examples=promise.max_examples // 8)
IDENTITY = {"run": "mine", "step": "1"}


def write(path: Path, *trials: StoredTrial, routing: bool = True) -> Path:
    with TrialWriter(path, IDENTITY, routing) as writer:
        for each in trials:
            writer.add(each)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stored")


trials = st.builds(
    trial,
    st.integers(0, 10_000),
    turns=st.integers(0, 4),
    streams=st.integers(0, 3),
    layers=st.integers(0, 2),
    k=st.integers(1, 2),
    dtype=st.sampled_from([np.uint8, np.uint16]),
)


@promise
@given(made=st.lists(trials, max_size=2))
def test_trials_come_back_to_the_bit(made: list[StoredTrial]) -> None:
    table = to_table([to_row(each) for each in made])
    rows = from_table(table)
    assert same([from_row(row) for row in rows], made)
    assert [checksum(row) for row in rows] == [row["checksum"] for row in rows]


@few
@given(made=st.lists(trials, max_size=3, unique_by=lambda each: each.id))
def test_trials_come_back_from_files_to_the_bit(folder: Path, made: list[StoredTrial]) -> None:
    path = write(folder / "a.parquet", *made)
    assert same(list(read_trials(path)), made)
    assert read_ids(path) == [each.id for each in made]
    for each in made:
        assert same(read_trial(path, each.id), each)
    assert read_trial(path, "another") is None


@promise
@given(plan=plans, layout=layouts, seed=st.integers(0, 1000))
def test_trials_of_campaigns_come_back_and_hold_nothing_twice(plan, layout, seed: int) -> None:
    made = stitched(plan, seed, layout)
    row = to_row(made)
    assert same(from_row(row), made)
    if layout[0]:
        assert not any(stream["routing"]["rows"] for stream in row["trajectories"]), "its rows are its turns'"
    if not any(turn.restarted for turn in made.turns):
        assert sum(len(turn["prompt_ids"]) + len(turn["ids"]) for turn in row["turns"]) == len(made.trajectories[0].token_ids)


def test_every_field_counts() -> None:
    """The trials above have no field at its default, so that a new one that isn't stored is found."""
    made = trial(0)
    turn = made.turns[-1]
    for record in (made, turn, turn.completion, turn.rendered, made.trajectories[0]):
        for field in dataclasses.fields(record):
            if field.default is not dataclasses.MISSING:
                assert getattr(record, field.name) != field.default, field.name


def test_what_may_be_missing_comes_back_missing(folder: Path) -> None:
    made = trial(1)
    bare = [dataclasses.replace(turn, rendered=None) for turn in made.turns[:1]]
    unanswered = [dataclasses.replace(turn, rendered=dataclasses.replace(turn.rendered, answer=None)) for turn in made.turns[1:]]
    made = dataclasses.replace(made, reward=None, resolved=None, turns=(*bare, *unanswered))
    assert same(list(read_trials(write(folder / "b.parquet", made))), [made])


def test_what_is_read_is_read_only(folder: Path) -> None:
    (read,) = read_trials(write(folder / "c.parquet", trial(2)))
    done, stream = read.turns[-1].completion, read.trajectories[-1]
    arrays = [
        read.turns[-1].prompt_ids,
        done.ids,
        done.logprobs,
        done.routing,
        stream.token_ids,
        stream.loss_mask,
        stream.routed_experts,
    ]
    assert not any(array.flags.writeable for array in arrays)


def test_a_file_says_whose_it_is(folder: Path) -> None:
    header = read_header(write(folder / "d.parquet", trial(3), trial(4)))
    assert (header.identity, header.routing, header.trials) == (IDENTITY, True, 2)


def test_the_same_trials_make_the_same_file(folder: Path) -> None:
    one, other = (write(folder / name, trial(5), trial(6)) for name in ("e.parquet", "f.parquet"))
    assert one.read_bytes() == other.read_bytes()


def test_without_routing_rows_keep_their_number(folder: Path) -> None:
    made = trial(7)
    path = write(folder / "g.parquet", made, routing=False)
    (read,) = read_trials(path)
    assert not read_header(path).routing
    for before, after in zip(made.trajectories, read.trajectories, strict=True):
        assert after.routed_experts.shape == (len(before.token_ids) - 1, 0, 0)
        assert same(dataclasses.replace(after, routed_experts=before.routed_experts), before)
    assert [turn.completion.routing.shape for turn in read.turns] == [(len(turn.completion.routing), 0, 0) for turn in made.turns]


def test_memory_is_bounded_by_groups_of_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_writer, "GROUP", 10_000)
    made = [trial(seed, turns=20) for seed in range(12)]
    with TrialWriter(folder / "h.parquet", IDENTITY) as writer:
        for each in made:
            writer.add(each)
            assert writer._pending_bytes < 10_000
    assert same(list(read_trials(folder / "h.parquet")), made)
    assert same([read_trial(folder / "h.parquet", each.id) for each in made], made)


@few
@given(plan=plans, seed=st.integers(0, 100))
def test_a_summary_counts_what_there_is(folder: Path, plan, seed: int) -> None:
    made = stitched(plan, seed)
    (found,) = read_summaries(write(folder / "i.parquet", made))
    assert (found.id, found.task, found.ended_by, found.reward, found.resolved) == (made.id, "task", "done", 1.0, True)
    assert found.turns == len(plan)
    assert found.versions == {turn.completion.version for turn in made.turns}
    assert found.temperatures == {turn.temperature for turn in made.turns}
    assert found.loss_tokens == sum(step.sampled for step in plan)
    assert found.tokens == sum(len(stream.token_ids) for stream in made.trajectories)
    cases = Counter("restart" if turn.restarted else "exact" for turn in made.turns[1:])
    assert found.boundaries == Counter({Boundary(case): count for case, count in cases.items()})


def test_a_file_that_is_replaced_stays_until_the_new_one_is_whole(folder: Path) -> None:
    path = write(batch_path(folder, "train", 1), trial(8))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="two trials"):
        write(path, trial(9), trial(9))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["train-1.parquet"]
    write(path, trial(9))
    assert read_ids(path) == ["trial-9"]


def test_what_a_killed_process_left_is_never_read(tmp_path: Path) -> None:
    path = write(batch_path(tmp_path, "train", 1), trial(8))
    draft = path.with_name(f"{storage_writer.WRITING}train-2.parquet")
    draft.write_bytes(path.read_bytes()[:500])
    assert [file.path for file in batch_files(tmp_path)] == [path]
    (folder := path.with_name(f"{storage_writer.WRITING}mine")).mkdir()
    remove_interrupted(path.parent)
    assert sorted(path.parent.iterdir()) == [folder, path]


def test_batches_and_passes_stand_in_the_order_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "trajectories").mkdir()
    names = [
        "eval-b_2-greedy-untrained",
        "eval-a-greedy-0",
        "eval-a-sampled-0",
        "warmup-0",
        "warmup-1",
        "train-9",
        "train-10",
        "eval-a-greedy-10",
    ]
    others = [
        "notes",
        "train-09",
        "train-²",
        "Train-3",
        "train-4 (copy)",
        "train-untrained",
        "warmup-untrained",
        "eval-A-greedy-1",
        "eval-a-1",
    ]
    for name in (*reversed(names), *others):
        (tmp_path / "trajectories" / f"{name}.parquet").touch()
    (tmp_path / "trajectories" / "train-5.parquet").mkdir()
    (tmp_path / "trajectories" / "train-7.parquet").symlink_to("nothing")
    os.mkfifo(tmp_path / "trajectories" / "train-8.parquet")
    (tmp_path / "trajectories" / f"{storage_writer.WRITING}train-6.parquet").touch()
    files = batch_files(tmp_path)
    assert [file.name for file in files] == names
    assert [(file.purpose, file.step, file.suite) for file in files][:2] == [
        ("eval-b_2-greedy", None, "b_2"),
        ("eval-a-greedy", 0, "a"),
    ]
    assert [(file.purpose, file.step, file.suite) for file in files][4:6] == [("warmup", 1, None), ("train", 9, None)]
    assert [file.path for file in files] == [batch_path(tmp_path, file.purpose, file.step) for file in files]
    assert {path.stem: why for path, why in strangers(tmp_path).items()} == {
        **dict.fromkeys(others, "isn't named as a batch or an evaluation is"),
        **dict.fromkeys(("train-5", "train-7", "train-8"), "isn't a file"),
    }


def test_streams_that_disagree_are_not_written(folder: Path) -> None:
    made = trial(10)
    turn, stream = made.turns[0], made.trajectories[0]
    done = turn.completion

    def with_turn(**changes) -> StoredTrial:
        return dataclasses.replace(made, turns=(dataclasses.replace(turn, **changes), *made.turns[1:]))

    def with_done(**changes) -> StoredTrial:
        return with_turn(completion=dataclasses.replace(done, **changes))

    def with_stream(**changes) -> StoredTrial:
        return dataclasses.replace(made, trajectories=(dataclasses.replace(stream, **changes), *made.trajectories[1:]))

    flawed = {
        r"turn 0: prompt_ids are int64": with_turn(prompt_ids=turn.prompt_ids.astype(np.int64)),
        r"turn 0: logprobs are float64": with_done(logprobs=done.logprobs.astype(np.float64)),
        r"turn 0: logprobs are float32 \[\d\], but must be float32": with_done(logprobs=done.logprobs[1:]),
        r"turn 0: its routing is short": with_done(routing=done.routing[1:]),
        r"turn 0: routing is int64": with_done(routing=done.routing.astype(np.int64)),
        r"turn 0: starts of the rendered ids": with_turn(
            rendered=dataclasses.replace(
                turn.rendered, encoded=dataclasses.replace(turn.rendered.encoded, starts=np.zeros(99, np.int32))
            )
        ),
        r"turn 0: finish_reason is 'eos', not one of stop, length, abort": with_done(finish_reason="eos"),
        r"turn 0: ids have -3 among them": with_done(ids=np.full_like(done.ids, -3)),
        r"Python int too large": with_done(version=2**63),
        r".*'utf-8' codec can't encode": dataclasses.replace(made, task="a\ud800"),
        r"trajectory 0: token_ids have -1": with_stream(token_ids=np.full_like(stream.token_ids, -1)),
        r"trajectory 0: its substituted rows aren't in order": with_stream(substituted_rows=(len(stream.token_ids) - 1,)),
        r"trajectory 0: version 3 is that of tokens \[0, 1000\) of": with_stream(versions=(VersionSpan(0, 1000, 3),)),
        r"trajectory 0: loss_mask are bool": with_stream(loss_mask=stream.loss_mask[1:]),
        r"trajectory 0: logprobs": with_stream(logprobs=stream.logprobs[1:]),
        r"trajectory 0: its streams disagree": with_stream(routed_experts=stream.routed_experts[1:]),
    }
    for said, each in flawed.items():
        with pytest.raises(ValueError, match=f"trial trial-10 can't be stored: {said}"):
            write(folder / "j.parquet", each)
    with pytest.raises(ValueError, match=r"two trials of j.parquet have the id trial-10"):
        write(folder / "j.parquet", made, made)
    assert not (folder / "j.parquet").exists()

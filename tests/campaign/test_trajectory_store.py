"""Trials of a run on disk: which batches, how many of them, and what happens where they can't be written."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from t1x.campaign import trajectory_store
from t1x.campaign.stored_trajectories import StoredTrajectories
from t1x.campaign.trajectory_store import TrajectoryStore
from t1x.engine.protocol import Completion
from t1x.grading.report import VerifierReport
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn
from t1x.trajectory.storage_folder import batch_files, step_name
from t1x.trajectory.storage_reader import read_header, read_trials
from t1x.trajectory.storage_writer import WRITING

HERE = Path(__file__).parent
IDENTITY = {"run": "quick", "seed": "3"}


def trial(name: str, ended_by: EndedBy = EndedBy.DONE, tokens: int = 40) -> Trial:
    """One turn whose second half is sampled; routing is random, so that it takes room."""
    random = np.random.default_rng(tokens)
    ids, half = np.arange(tokens, dtype=np.int32), tokens // 2
    routing = random.integers(0, 256, (tokens - 1, 2, 4)).astype(np.uint8)
    logprobs = -random.random(tokens - half).astype(np.float32)
    completion = Completion(ids[half:], logprobs, routing, 0, "stop", 2)
    stream = Trajectory(ids, ids >= half, np.concatenate([np.zeros(half, np.float32), logprobs]), routing, (), (), 1.0)
    counts = ended_by.counts
    return Trial(
        id=name,
        task=Task("sort", "", (), (), ()),
        turns=(Turn(0, ids[:half], completion, 1.0),),
        ended_by=ended_by,
        report=VerifierReport((("a", True),)) if counts else None,
        reward=0.05 if counts else None,
        trajectories=(stream,) if counts else (),
        transcript=(),
    )


def store(run: Path, said: list[str] | None = None, **spec) -> TrajectoryStore:
    return TrajectoryStore(run, StoredTrajectories(**spec), IDENTITY, (said if said is not None else []).append)


def kept(run: Path) -> list[str]:
    return [file.path.stem for file in batch_files(run)]


def stored_all(run: Path, said: list[str] | None = None, steps: int = 6, tokens: int = 40, **spec) -> list[str]:
    """What is kept of two warm-up batches and some steps."""
    storing = store(run, said, **spec)
    for purpose, step in [("warmup", 0), ("warmup", 1), *(("train", step) for step in range(1, steps + 1))]:
        storing.store(purpose, step, [trial(f"{purpose}-{step}-0", tokens=tokens)])
    storing.close()
    return kept(run)


def test_all_batches_are_kept_by_default(tmp_path: Path) -> None:
    assert stored_all(tmp_path) == ["warmup-0", "warmup-1", *(f"train-{step}" for step in range(1, 7))]


def test_valid_and_invalid_trials_are_kept_as_they_were(tmp_path: Path) -> None:
    storing = store(tmp_path)
    good, bad = trial("train-3-0"), trial("train-3-1", EndedBy.ENGINE_ERROR)
    storing.store("train", 3, [good, bad])
    storing.close()
    (file,) = batch_files(tmp_path)
    assert read_header(file.path).identity == {**IDENTITY, "purpose": "train", "step": "3"}
    one, other = read_trials(file.path)
    assert (one.id, one.task, one.ended_by, one.reward, one.resolved) == ("train-3-0", "sort", "done", 0.05, True)
    assert (other.id, other.ended_by, other.reward, other.resolved) == ("train-3-1", "engine_error", None, None)
    assert (len(one.turns), len(one.trajectories), len(other.turns), len(other.trajectories)) == (1, 1, 1, 0)


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"every": 2}, ["warmup-0", "train-1", "train-3", "train-5"]),
        ({"every": 4}, ["warmup-0", "train-1", "train-5"]),
        ({"every": 0}, []),
        ({"last": 3}, ["train-4", "train-5", "train-6"]),
        ({"every": 3, "last": 1}, ["train-4"]),
    ],
)
def test_batches_are_kept_as_every_and_last_say(tmp_path: Path, spec: dict[str, int], left: list[str]) -> None:
    assert stored_all(tmp_path, **spec) == left


def evaluated(run: Path, spec: StoredTrajectories, tokens: int = 4000) -> list[str]:
    """What is kept of passes over two suites and three steps, in the order in which a campaign makes them."""
    storing = TrajectoryStore(run, spec, IDENTITY, print)
    for step in (None, 0, 1, 2, 3):
        if step:
            storing.store("train", step, [trial(f"train-{step}-0", tokens=tokens)])
        for purpose in ("eval-validation-greedy", "eval-held_out-sampled"):
            if step != 2:
                storing.store_pass(purpose, step, [trial(f"{purpose}-{step_name(step)}-0", tokens=tokens)])
    storing.close()
    return kept(run)


def passes(at: object) -> list[str]:
    return [f"eval-held_out-sampled-{at}", f"eval-validation-greedy-{at}"]


def test_passes_over_suites_are_kept_too(tmp_path: Path) -> None:
    found = evaluated(tmp_path, StoredTrajectories())
    assert found == [*passes("untrained"), *passes(0), "train-1", *passes(1), "train-2", "train-3", *passes(3)]
    assert [file.suite for file in batch_files(tmp_path)][:2] == ["held_out", "validation"]
    header = read_header(tmp_path / "trajectories" / "eval-held_out-sampled-untrained.parquet")
    assert header.identity == {**IDENTITY, "purpose": "eval-held_out-sampled", "step": "untrained"}


def test_a_pass_is_on_disk_when_it_was_stored(tmp_path: Path) -> None:
    storing = store(tmp_path)
    storing.store_pass("eval-held_out-greedy", 3, [trial("a"), trial("b", EndedBy.SANDBOX_ERROR)])
    (file,) = batch_files(tmp_path)
    assert [each.id for each in read_trials(file.path)] == ["a", "b"]
    storing.close()


def test_passes_take_their_share_of_the_disk_and_batches_the_rest(tmp_path: Path) -> None:
    evaluated(tmp_path / "all", StoredTrajectories())
    size = max(file.path.stat().st_size for file in batch_files(tmp_path / "all"))
    assert min(file.path.stat().st_size for file in batch_files(tmp_path / "all")) > 0.9 * size > 20_000
    room = 5.5 * size / 1e9
    share = 2.5 / 5.5
    assert evaluated(tmp_path / "some", StoredTrajectories(gigabytes=room, evaluations=share)) == [
        "train-1", "train-2", "train-3", *passes(3)
    ]  # fmt: skip
    assert evaluated(tmp_path / "none", StoredTrajectories(evaluations=0)) == ["train-1", "train-2", "train-3"]
    assert evaluated(tmp_path / "few", StoredTrajectories(last=1))[-3:] == ["train-3", *passes(3)]
    assert evaluated(tmp_path / "least", StoredTrajectories(gigabytes=1e-9)) == ["train-3", passes(3)[1]], "the newest of both"
    assert evaluated(tmp_path / "whole", StoredTrajectories(gigabytes=room, evaluations=1)) == [
        passes(0)[1], *passes(1), "train-3", *passes(3)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "left"),
    [(None, [*passes("untrained")]), (0, [*passes("untrained"), *passes(0)]), (2, [*passes("untrained"), *passes(0), *passes(1)])],
)
def test_passes_of_policies_that_a_run_turns_away_from_are_removed(tmp_path: Path, at: int | None, left: list[str]) -> None:
    evaluated(tmp_path, StoredTrajectories(), tokens=40)
    again = store(tmp_path)
    again.go_on(0, 0, at)
    again.close()
    assert kept(tmp_path) == left


def test_disk_is_bounded_and_the_newest_stays(tmp_path: Path) -> None:
    stored_all(tmp_path / "all", tokens=4000)
    sizes = [file.path.stat().st_size for file in batch_files(tmp_path / "all")]
    assert min(sizes) > 20_000
    room = sum(sizes[-3:]) + sizes[-4] // 2
    assert stored_all(tmp_path / "some", tokens=4000, gigabytes=room / 1e9) == ["train-4", "train-5", "train-6"]
    assert stored_all(tmp_path / "least", tokens=4000, gigabytes=1e-9) == ["train-6"]


def test_routing_may_be_left_out(tmp_path: Path) -> None:
    sizes = []
    for routing in (True, False):
        run = tmp_path / str(routing)
        stored_all(run, steps=1, tokens=4000, routing=routing)
        (*_, file) = batch_files(run)
        assert read_header(file.path).routing == routing
        sizes.append(file.path.stat().st_size)
    assert sizes[0] - sizes[1] > 0.9 * 4000 * 8, "2 layers of 4 random bytes a token don't get smaller"


def test_a_batch_that_must_be_kept_is_kept(tmp_path: Path) -> None:
    storing = store(tmp_path, every=0)
    assert storing.store_now("train", 2, [trial("a")])
    assert kept(tmp_path) == ["train-2"]
    storing.close()


def test_trials_that_disagree_are_told_from_a_full_disk(tmp_path: Path) -> None:
    """And whoever would point a reader to them knows that they aren't there."""
    said: list[str] = []
    storing, (turn,) = store(tmp_path, said), (whole := trial("a")).turns
    short = replace(turn, completion=replace(turn.completion, logprobs=turn.completion.logprobs[1:]))
    assert not storing.store_now("train", 2, [replace(whole, turns=(short,))])
    storing.close()
    (warning,) = said
    assert "aren't kept: trial a can't be stored: turn 0: logprobs are float32 [19], but must be float32 [20]" in warning
    assert str(tmp_path) not in warning, "no folder is to blame"


def test_writing_goes_on_beside_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, writer = threading.Event(), threading.Event(), trajectory_store.TrialWriter

    def waiting(*arguments) -> object:
        begun.set()
        assert may_end.wait(60)
        return writer(*arguments)

    monkeypatch.setattr(trajectory_store, "TrialWriter", waiting)
    storing = store(tmp_path)
    storing.store("train", 1, [trial("a")])
    assert begun.wait(60)
    assert kept(tmp_path) == []
    may_end.set()
    storing.finish()
    assert kept(tmp_path) == ["train-1"]
    storing.close()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    stored_all(tmp_path, steps=1)
    (tmp_path / "trajectories" / f"{WRITING}train-2.parquet").write_bytes(b"half")
    store(tmp_path).close()
    assert sorted(path.name for path in (tmp_path / "trajectories").iterdir()) == [
        f"{name}.parquet" for name in sorted(kept(tmp_path))
    ]


@pytest.mark.parametrize(
    ("warmups", "rolled", "left"),
    [
        (0, 0, []),
        (1, 0, ["warmup-0"]),
        (2, 0, ["warmup-0", "warmup-1"]),
        (2, 2, ["warmup-0", "warmup-1", "train-1", "train-2"]),
    ],
)
def test_a_past_that_is_turned_away_from_is_removed(tmp_path: Path, warmups: int, rolled: int, left: list[str]) -> None:
    stored_all(tmp_path, steps=4)
    again = store(tmp_path)
    again.go_on(warmups, rolled, None)
    again.close()
    assert kept(tmp_path) == left


def test_what_can_not_be_written_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "trajectories").write_text("in the way")
    said: list[str] = []
    assert stored_all(tmp_path, said, steps=1) == []
    assert len(said) == 3
    assert said[-1].startswith(f"warning: the trials of train-1 aren't kept in {tmp_path / 'trajectories'}: ")
    assert "File exists" in said[-1]
    assert said[-1].endswith("the run goes on without")


def test_a_trial_that_can_not_be_written_is_said_too(tmp_path: Path) -> None:
    said: list[str] = []
    storing, sound = store(tmp_path, said), trial("b")
    huge = replace(sound.turns[0], completion=replace(sound.turns[0].completion, version=2**63))
    storing.store("train", 1, [replace(sound, turns=(huge,))])
    storing.store("train", 2, [sound])
    storing.close()
    (warning,) = said
    assert warning.startswith("warning: the trials of train-1 aren't kept: trial b can't be stored: ")
    assert "trial b can't be stored: Python int too large" in warning
    assert kept(tmp_path) == ["train-2"]


def test_folders_in_the_way_are_left_and_said(tmp_path: Path) -> None:
    for name in (f"{WRITING}train-1.parquet", "train-2.parquet"):
        (tmp_path / "trajectories" / name).mkdir(parents=True)
    said: list[str] = []
    assert stored_all(tmp_path, said, steps=3, last=1) == ["train-3"]
    assert [warning.partition(" aren't")[0] for warning in said] == [f"warning: the trials of train-{n}" for n in (1, 2)]
    assert all("directory" in warning or "is a folder" in warning for warning in said)
    assert sorted(path.name for path in (tmp_path / "trajectories").iterdir()) == [
        f"{WRITING}train-1.parquet", "train-2.parquet", "train-3.parquet"
    ]  # fmt: skip


def test_a_full_disk_leaves_the_older_ones(tmp_path: Path) -> None:
    assert stored_all(tmp_path, steps=0) == ["warmup-0", "warmup-1"]
    code = f"""
import resource, signal
from pathlib import Path
from test_trajectory_store import store, trial
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
said = []
storing = store(Path({str(tmp_path)!r}), said)
storing.store("train", 1, [trial("a", tokens=40_000)])
storing.store("train", 2, [trial("b")])
storing.finish()
left = sorted(Path({str(tmp_path)!r}, "trajectories").glob("{WRITING}*"))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 20_000))
storing.store("train", 3, [trial("c")])
storing.close()
left += sorted(Path({str(tmp_path)!r}, "trajectories").glob("{WRITING}*"))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
print(said, "left:", left)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert "the trials of train-1 aren't kept" in done.stdout
    assert "File too large" in done.stdout
    assert "the trials of train-3 aren't kept" in done.stdout
    assert "left: []" in done.stdout
    assert not done.stderr
    assert kept(tmp_path) == ["warmup-0", "warmup-1", "train-2"]
    assert not list((tmp_path / "trajectories").glob(f"{WRITING}*"))

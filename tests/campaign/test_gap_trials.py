"""Which stored trials `t1x gap` takes, and with which of a run's checkpoints."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from test_run_listing import make_run

from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_evaluation import Weights, find_weights
from t1x.campaign.gap_source import GapSource
from t1x.campaign.gap_trials import Matched, matched
from t1x.engine.protocol import Completion
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn, VersionSpan
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial


def trial(name: str, versions: Sequence[int], temperature: float = 1.0, tokens: int = 2) -> StoredTrial:
    """A turn a version, each of a prompt of two ids and of so many that are sampled."""
    turns, ids, rows = [], np.zeros(0, np.int32), np.zeros((0, 1, 1), np.uint8)
    for index, version in enumerate(versions):
        prompt = np.concatenate([ids, np.array([1, 2], np.int32)])
        sampled = np.full(tokens, 3, np.int32)
        ids = np.concatenate([prompt, sampled])
        rows = np.zeros((len(ids) - 1, 1, 1), np.uint8)
        turns.append(Turn(index, prompt, Completion(sampled, np.zeros(tokens, np.float32), rows, 0, "stop", version), temperature))
    mask = ids == 3
    spans = tuple(VersionSpan(index * (2 + tokens), (index + 1) * (2 + tokens), each) for index, each in enumerate(versions))
    stream = Trajectory(ids, mask, np.zeros(len(ids), np.float32), rows, spans, (), temperature)
    return StoredTrial(name, "toy", EndedBy.DONE, 1.0, True, tuple(turns), (stream,) if tokens else ())


def write(path: Path, *trials: StoredTrial, **identity: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    with TrialWriter(path, identity) as writer:
        for each in trials:
            writer.add(each)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """One that has kept the start and step 2 and whose newest weights are of step 3."""
    folder = make_run(tmp_path / "runs", "toy", checkpoint="checkpoints/step-3").folder
    for name in ("start", "step-2", "step-3"):
        (folder / "checkpoints" / name / "policy").mkdir(parents=True)
        (folder / "checkpoints" / name / "policy" / "config.json").write_text("{}")
    return folder


def found(
    given: Path, *paths: Path, of_run: bool = True, temperature: float | None = 1.0, warnings: list[str] | None = None
) -> tuple[str, str, list[str]]:
    """Which checkpoint, file and trials."""
    said: list[str] = []
    try:
        match: Matched = matched(find_weights(str(given), Path()), paths, of_run, temperature, said.append)
    finally:
        assert said == (warnings or [])
    return match.weights.policy.parent.name, match.path.stem, sorted(match.ids)


def test_weights_go_with_the_trials_that_they_sampled_whatever_else_is_newer(run: Path, tmp_path: Path) -> None:
    newest = write(tmp_path / "newest.parquet", trial("a", [2]), trial("b", [2]))
    mixed = write(tmp_path / "mixed.parquet", trial("c", [1]), trial("d", [3, 3]), trial("e", [3, 2]))
    for given in (run, run / "checkpoints" / "step-3"):
        assert found(given, newest, mixed) == ("step-3", "mixed", ["d"])
    assert found(run / "checkpoints" / "step-2", newest, mixed) == ("step-2", "newest", ["a", "b"])


def test_a_run_stands_for_the_newest_kept_checkpoint_that_sampled_what_is_kept(run: Path, tmp_path: Path) -> None:
    unkept = write(tmp_path / "unkept.parquet", trial("a", [1]))
    kept = write(tmp_path / "kept.parquet", trial("b", [0]), trial("c", [2]), trial("d", [2, 1]))
    old = write(tmp_path / "old.parquet", trial("e", [0]))
    assert found(run, unkept, kept, old) == ("step-2", "kept", ["c"])
    assert found(run, unkept, old) == ("start", "old", ["e"])
    assert found(run / "checkpoints" / "start", unkept, kept, old) == ("start", "kept", ["b"])


def test_weights_that_were_named_stay_and_where_no_sampler_is_kept_so_do_the_newest(run: Path, tmp_path: Path) -> None:
    unkept = write(tmp_path / "unkept.parquet", trial("a", [1]), trial("b", [1, 2]))
    old = write(tmp_path / "old.parquet", trial("c", [0]))
    assert found(run / "checkpoints" / "step-3", unkept, old) == ("step-3", "unkept", ["a", "b"])
    assert found(run, unkept) == ("step-3", "unkept", ["a", "b"])


def test_versions_of_another_run_say_nothing(run: Path, tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs.parquet", trial("a", [3]), trial("b", [2]))
    assert found(run, theirs, of_run=False) == ("step-3", "theirs", ["a", "b"])


def test_no_kept_weights_sampled_what_the_untrained_policy_did(run: Path, tmp_path: Path) -> None:
    untrained = write(tmp_path / "untrained.parquet", trial("a", [0]), step="untrained")
    start = write(tmp_path / "start.parquet", trial("b", [0]), step="0")
    assert found(run, untrained, start) == ("start", "start", ["b"])
    assert found(run, untrained) == ("step-3", "untrained", ["a"])


def test_trials_that_give_no_gap_are_passed_over(run: Path, tmp_path: Path) -> None:
    greedy = write(tmp_path / "greedy.parquet", trial("a", [3], temperature=0.0), trial("b", [3], tokens=0))
    warm = write(tmp_path / "warm.parquet", trial("c", [3]), trial("d", [3], temperature=0.0))
    assert found(run, greedy, warm) == ("step-3", "warm", ["c"])
    with pytest.raises(ValueError, match=r"greedy.parquet holds no readable trial that sampled a token at a temperature above 0;"):
        found(run, greedy, temperature=None)


def test_another_temperature_is_measured_only_where_it_is_let(run: Path, tmp_path: Path) -> None:
    cold = write(tmp_path / "cold.parquet", trial("a", [3], temperature=0.1))
    old = write(tmp_path / "old.parquet", trial("b", [2]))
    assert found(run, cold, old) == ("step-2", "old", ["b"])
    assert found(run, cold, temperature=None) == ("step-3", "cold", ["a"])
    with pytest.raises(ValueError, match=r"cold.parquet holds no readable trial that sampled a token at a temperature of 1;"):
        found(run, cold)
    with pytest.raises(ValueError, match=r"\(2 files\) holds no readable trial that sampled a token at a temperature of 1;"):
        found(run, cold, cold)


def test_a_file_that_can_not_be_read_is_passed_over_with_a_warning(run: Path, tmp_path: Path) -> None:
    sound = write(tmp_path / "sound.parquet", trial("a", [3]))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(sound.read_bytes()[:-100])
    with pytest.raises(TrialFileError) as error:
        read_header(damaged)
    warnings = [f"warning: {error.value}"]
    assert found(run, damaged, sound, warnings=warnings) == ("step-3", "sound", ["a"])
    with pytest.raises(ValueError, match=r"damaged.parquet holds no readable trial"):
        found(run, damaged, warnings=warnings)


def test_what_a_user_named_is_measured_at_any_temperature_and_a_lone_file_of_a_run_is_not_named(run: Path) -> None:
    lone = write(run / "trajectories" / "train-3.parquet", trial("a", [3], temperature=0.5))
    source, warnings = GapSource(find_weights(str(run), Path()), Campaign.model_construct(temperature=1.0)), list[str]()
    for step, file in (("3", None), (None, lone)):
        assert list(source.stored(step, file, None, warnings.append)[1]) == ["a"]
    with pytest.raises(ValueError, match=r"train-3.parquet holds no readable trial that sampled a token at a temperature of 1;"):
        source.stored(None, None, None, warnings.append)
    assert not warnings
    lone.write_bytes(lone.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"train-3.parquet holds no readable trial"):
        source.stored(None, None, None, warnings.append)
    assert len(warnings) == 1
    with pytest.raises(TrialFileError):
        source.stored(None, lone, None, warnings.append)


def test_weights_of_no_run_are_measured_on_what_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "any.parquet", trial("a", [3]), trial("b", [2]))
    assert matched(Weights(tmp_path, None), [path], True, 1.0, print).ids == {"a", "b"}


def test_a_file_that_the_run_removes_meanwhile_is_passed_over(run: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "any.parquet", trial("a", [3]))
    assert found(run, tmp_path / "gone.parquet", path) == ("step-3", "any", ["a"])

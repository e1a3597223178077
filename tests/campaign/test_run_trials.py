"""The stored trials of a run are told from another's."""

from pathlib import Path

import pytest

from t1x.campaign.record import Run
from t1x.campaign.run_trials import trial_of, trials_of
from t1x.campaign.stored_trajectories import StoredTrajectories
from t1x.campaign.trajectory_store import TrajectoryStore
from t1x.rollout.records import Trial
from t1x.tasks.synthetic import SyntheticPool
from t1x.trajectory.ending import EndedBy

(TASK,) = SyntheticPool(split="train", size=1).build()


def run(folder: Path, started: float) -> Run:
    """One that has kept a batch and a pass over a suite."""
    folder.mkdir()
    fields = {"name": "a", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": None}
    made = Run(folder=folder, experiment="", started=started, **fields).save()
    storing = TrajectoryStore(folder, StoredTrajectories(), made.identity, print)
    for purpose in ("train", "eval-held_out-greedy"):
        trial = Trial(f"{purpose}-1-0", TASK, (), EndedBy.SANDBOX_ERROR, None, None, (), ())
        (storing.store if purpose == "train" else storing.store_pass)(purpose, 1, [trial])
    storing.close()
    return made


def test_its_own_are_found_and_those_of_another_refused(tmp_path: Path) -> None:
    one, other = run(tmp_path / "one", 1.5), run(tmp_path / "other", 2.5)
    assert [file.name for file in trials_of(one)] == [file.name for file in trials_of(one, "1")] == ["train-1"]
    assert [file.name for file in trials_of(one, suite="held_out")] == ["eval-held_out-greedy-1"]
    for trial in ("train-1-0", "eval-held_out-greedy-1-0"):
        assert f"{trial_of(one, trial, None, None, print).name}-0" == trial
    (batch,) = trials_of(other)
    batch.path.rename(one.folder / "trajectories" / batch.path.name)
    for search in (lambda: trials_of(one), lambda: trial_of(one, "train-1-0", None, None, print)):
        with pytest.raises(ValueError, match=r"holds trials of other runs \(train-1 of other\)"):
            search()

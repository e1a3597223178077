"""The record of a run, as its process writes it and others read it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from child import child

from t1x.campaign.record import Measured, Run, Status, alive, find_finished, latest, read_run, runs


def record(folder: Path, **changes: object) -> Run:
    folder.mkdir(parents=True)
    fields = {"name": "a", "kind": "Campaign", "run_digest": "d1", "study_digest": "s1", "seed": 0, "site": "laptop"}
    return Run(folder=folder, experiment="a.gin", **{**fields, **changes}).save()


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    scores = {"held_out": {"resolved_rate": Measured(0.5, 0.1, 40), "resolved_rate_greedy": Measured(1.0, None, 1)}}
    written = replace(record(tmp_path / "a").ended(Status.FINISHED, 1.0), scores=scores, checkpoint="checkpoints/step-30").save()
    assert read_run(tmp_path / "a") == written
    assert written.weights is None, "they aren't there any more"
    (tmp_path / "a" / "checkpoints" / "step-30").mkdir(parents=True)
    assert written.weights == tmp_path / "a" / "checkpoints" / "step-30"


def test_files_of_its_trials_know_it_after_it_was_renamed_and_changed(tmp_path: Path) -> None:
    made = record(tmp_path / "a", seed=3, started=1.5)
    assert made.identity == {"run": "a", "started": "1.5", "run_digest": "d1", "seed": "3"}
    (tmp_path / "a").rename(tmp_path / "b")
    replace(read_run(tmp_path / "b"), run_digest="d2", mixed=True).save()
    assert read_run(tmp_path / "b").identity == {**made.identity, "run": "b", "run_digest": "d2"}


def test_it_runs_while_its_process_lives(tmp_path: Path) -> None:
    record(tmp_path / "a")
    with alive(tmp_path / "a"):
        assert read_run(tmp_path / "a").status is Status.RUNNING
    assert read_run(tmp_path / "a").status is Status.KILLED
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["run.json"], "the lock's file is gone"


def test_it_was_killed_where_its_process_is_gone(tmp_path: Path) -> None:
    record(tmp_path / "a")
    code = "import sys, time, pathlib; from t1x.campaign.record import alive\n"
    code += "with alive(pathlib.Path(sys.argv[1])): print('here', flush=True); time.sleep(100)"
    with child([sys.executable, "-c", code, tmp_path / "a"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        assert read_run(tmp_path / "a").status is Status.RUNNING
    assert read_run(tmp_path / "a").status is Status.KILLED


def test_an_error_is_kept_short(tmp_path: Path) -> None:
    ended = record(tmp_path / "a").ended(Status.FAILED, 1.0, "x" * 5000)
    assert len(ended.error or "") == 1000
    assert ended.seconds >= 0


def test_runs_are_listed_newest_first_and_found_by_digest(tmp_path: Path) -> None:
    record(tmp_path / "old", started=1.0).ended(Status.FINISHED, 1.0).save()
    record(tmp_path / "new", started=2.0).ended(Status.FINISHED, 1.0).save()
    record(tmp_path / "failed", started=3.0).ended(Status.FAILED, 1.0, "why").save()
    record(tmp_path / "other", started=4.0, run_digest="d2").ended(Status.FINISHED, 1.0).save()
    (tmp_path / "no run").mkdir()
    assert [run.folder.name for run in runs(tmp_path)] == ["other", "failed", "new", "old"]
    found = find_finished(tmp_path, "d1")
    assert found is not None
    assert found.folder.name == "new"
    assert find_finished(tmp_path, "d3") is None
    assert runs(tmp_path / "nowhere") == []


def test_the_latest_run_of_a_digest_is_the_newest_that_finished(tmp_path: Path) -> None:
    record(tmp_path / "old", started=1.0).ended(Status.FINISHED, 1.0).save()
    record(tmp_path / "new", started=2.0).ended(Status.FINISHED, 1.0).save()
    record(tmp_path / "failed", started=3.0).ended(Status.FAILED, 1.0, "why").save()
    record(tmp_path / "first try", started=4.0, run_digest="d2").ended(Status.FAILED, 1.0, "why").save()
    record(tmp_path / "second try", started=5.0, run_digest="d2").ended(Status.FAILED, 1.0, "why").save()
    chosen = {run_digest: run.folder.name for run_digest, run in latest(runs(tmp_path)).items()}
    assert chosen == {"d1": "new", "d2": "second try"}


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"name": "a"})])
def test_one_that_cannot_be_read_is_told_and_left_out(tmp_path: Path, text: str) -> None:
    record(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run.json").write_text(text)
    with pytest.warns(UserWarning, match=r"b/run\.json isn't the record of a run"):
        assert [run.folder.name for run in runs(tmp_path)] == ["a"]

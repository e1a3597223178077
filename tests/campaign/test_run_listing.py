"""Runs that a user names, and how they stand."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from t1x.campaign.find_run import find_run
from t1x.campaign.record import Measured, Run, Status, alive
from t1x.campaign.standing import TAIL, standing, steps_made
from t1x.cli.runs_table import runs_table


def make_run(runs: Path, name: str, status: Status = Status.FINISHED, **more: object) -> Run:
    folder = runs / name
    folder.mkdir(parents=True)
    fields = {"name": name, "kind": "Campaign", "run_digest": name, "study_digest": "s", "seed": 0, "site": None}
    return Run(folder=folder, experiment="a.gin", status=status, **{**fields, **more}).save()


def test_a_run_is_found_by_folder_name_id_and_how_they_begin(tmp_path: Path) -> None:
    first, second = make_run(tmp_path, "quick-1a-0", tracking_id="aa11"), make_run(tmp_path, "quick-1b-0", tracking_id="bb22")
    for wanted in (str(tmp_path / "quick-1a-0"), "quick-1a-0", "aa11", "quick-1a", "a"):
        assert find_run(wanted, tmp_path) == first, wanted
    assert find_run("bb", tmp_path) == second
    make_run(tmp_path, "quick-1a-0.2")
    assert find_run("quick-1a-0", tmp_path) == first, "a whole name wins over the beginning of another"


def test_a_name_that_means_no_run_or_several_is_told(tmp_path: Path) -> None:
    make_run(tmp_path, "quick-1a-0")
    make_run(tmp_path, "quick-1b-0")
    with pytest.raises(ValueError, match="'quick' may be quick-1a-0 or quick-1b-0; write more of the name"):
        find_run("quick", tmp_path)
    with pytest.raises(ValueError, match=r"no run 'quack-1a-0' in .*; did you mean 'quick-1a-0'\?; `t1x runs --runs .*` lists"):
        find_run("quack-1a-0", tmp_path)
    with pytest.raises(ValueError, match="no run ''"):
        find_run("", tmp_path)


def test_what_lies_in_a_run_or_is_a_smoke_test_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_run(tmp_path, "quick-1a-0")
    (first.folder / "trajectories").mkdir()
    for inside in ("trajectories", "trajectories/train-1.parquet"):
        path = first.folder / inside
        with pytest.raises(ValueError, match=f"{path} isn't a run, but lies in one; name that: {first.folder}$"):
            find_run(str(path), tmp_path)
    monkeypatch.chdir(first.folder)
    with pytest.raises(ValueError, match="there is no run 'slow'"):
        find_run("slow", tmp_path)
    tried = make_run(tmp_path / "smoke", "slow-1c-0")
    with pytest.raises(ValueError, match=f"no run 'slow' in {tmp_path}, but a smoke test; name its folder: {tried.folder}$"):
        find_run("slow", tmp_path)
    assert find_run(str(tried.folder), tmp_path).folder == tried.folder


def log(folder: Path, *entries: tuple[int, dict[str, float]], end: str = "") -> None:
    lines = [json.dumps({"step": step, "time": 0.0, "metrics": metrics}) + "\n" for step, metrics in entries]
    (folder / "log.jsonl").write_text("".join(lines) + end)


def test_steps_are_those_of_training(tmp_path: Path) -> None:
    assert steps_made(tmp_path) == 0, "no log yet"
    log(tmp_path, (0, {"eval/x/tasks": 1.0}), (7, {"warmup/time/step": 1.0}))
    assert steps_made(tmp_path) == 0
    log(tmp_path, (1, {"time/step": 1.0}), (2, {"time/step": 1.0}), (2, {"eval/x/tasks": 1.0}), end='{"step": 3, "metr')
    assert steps_made(tmp_path) == 2, "evaluations and half a line are passed over"
    log(tmp_path, *((step, {"time/step": 0.0, "x" * 2000: 0.0}) for step in range(1, 2 + TAIL // 2000)))
    assert (tmp_path / "log.jsonl").stat().st_size > TAIL
    assert steps_made(tmp_path) == 1 + TAIL // 2000


def test_how_a_run_stands(tmp_path: Path) -> None:
    scores = {"held_out": {"resolved_rate_greedy": Measured(0.5, 0.1, 40)}, "other": {"resolved_rate": Measured(1.0, None, 1)}}
    ended = make_run(tmp_path, "a", steps=30, scores=scores, seconds=12.0)
    log(ended.folder, (4, {"time/step": 1.0}))
    found = standing(ended)
    assert (found.step, found.seconds, found.score) == (4, 12.0, "held_out greedy 0.500 ± 0.100")
    assert found.disk == sum(file.stat().st_size for file in ended.folder.iterdir())
    assert standing(replace(ended, scores={"other": scores["other"]})).score == "other 1.000 ± ?"
    assert (
        standing(replace(ended, scores={"lh": {"partial_credit": Measured(0.25, 0.0, 2)}})).score
        == "lh partial credit 0.250 ± 0.000"
    )
    running = standing(make_run(tmp_path, "b", Status.RUNNING, started=time.time() - 100))
    assert 100 <= running.seconds < 200
    assert math.isnan(standing(make_run(tmp_path, "c", Status.KILLED)).seconds)


def test_the_list_has_a_line_for_each_run(tmp_path: Path) -> None:
    found = [standing(make_run(tmp_path, "a", steps=30, seconds=200.0)), standing(make_run(tmp_path, "b", Status.KILLED))]
    console = Console(width=130)
    with console.capture() as capture:
        console.print(runs_table(found))
    lines = [line.split() for line in capture.get().splitlines()]
    assert lines[0] == ["run", "status", "step", "started", "took", "disk", "last", "score"]
    assert (lines[1][:3], lines[1][5:7]) == (["a", "finished", "0/30"], ["3", "min"])
    assert lines[2][:2] == ["b", "killed"]
    assert lines[3][:2] == ["2", "runs,"]


def test_a_run_is_running_while_its_lock_is_held(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", Status.RUNNING)
    with alive(run.folder):
        assert find_run("a", tmp_path).status is Status.RUNNING
    assert find_run("a", tmp_path).status is Status.KILLED

"""What is done with runs that are there: evaluated, stopped, removed. Every part real."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from leftovers import wait_until_nothing_is_left
from open_folder import open_folder
from starting import BASE
from stores import with_store

import t1x
from t1x.campaign.record import Run, Status
from t1x.cli import main
from t1x.config import load

SUITE = """
mine/BenchmarkSuite.name = 'mine'
mine/BenchmarkSuite.pool = @mine/SyntheticPool()
mine/BenchmarkSuite.attempts = 2
mine/SyntheticPool.split = 'held_out'
mine/SyntheticPool.size = 3
"""
EXPERIMENT = (
    BASE
    + """
Campaign.start = @ScratchStart()
Campaign.steps = 1
Campaign.suites = [@PoolSuite()]
PoolSuite.name = 'held_out'
PoolSuite.pool = @held_out/SyntheticPool()
PoolSuite.greedy = 3
held_out/SyntheticPool.split = 'held_out'
"""
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The runs folder's parent; sandboxes are in it too."""
    with open_folder() as folder:
        with_store(folder / "runs")
        (folder / "sandboxes").mkdir()
        (folder / "mine.gin").write_text(SUITE)
        (folder / "tiny.gin").write_text(EXPERIMENT)
        yield folder


@pytest.fixture(scope="module")
def trained(folder: Path) -> Run:
    changes = [f"Campaign.runs = '{folder / 'runs'}'", f"BubblewrapSandbox.root = '{folder / 'sandboxes'}'"]
    return t1x.run(load(folder / "tiny.gin", set=changes))


def scores(run: Run) -> dict[str, dict[str, float]]:
    return {row["suite"]: row["metrics"] for row in json.loads((run.folder / "report" / "scores.json").read_text())}


def test_the_last_policy_gets_the_scores_that_its_campaign_gave_it(
    trained: Run, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same weights on the same tasks, greedily; and beside that a suite out of a file."""
    words = ["eval", trained.folder.name, "--suite", "held_out", "--suite", str(folder / "mine.gin")]
    assert main([*words, "--runs", str(folder / "runs")]) == 0
    newest = t1x.runs(folder / "runs")[0]
    assert (newest.kind, newest.status) == ("Evaluation", Status.FINISHED)
    assert newest.name.startswith("eval-tiny-")
    found, own = scores(newest), json.loads((trained.folder / "report" / "scores.json").read_text())
    assert found["held_out"] == own[-1]["metrics"]
    assert {"pass_at_1", "pass_at_2", "reward_mean", "turns_failed"} <= found["mine"].keys()
    store = mlflow.MlflowClient(f"sqlite:///{folder / 'runs' / 'mlflow.db'}")
    assert newest.tracking_id is not None
    logged = store.get_run(newest.tracking_id).data.metrics
    assert logged["eval/mine/pass_at_2"] == found["mine"]["pass_at_2"]
    assert any(name.startswith("eval/held_out/family/") for name in logged)
    said = capfd.readouterr().out
    assert "start on mine, T = 0.1, 2 attempts: resolved" in said
    assert "Resolved rate, mean ± standard error over tasks" in said


def test_a_checkpoint_is_evaluated_from_python_too(trained: Run, folder: Path) -> None:
    start = trained.folder / "checkpoints" / "start"
    run = t1x.evaluate(start, "held_out", set="PoolSuite.greedy = 2")
    first = json.loads((trained.folder / "report" / "scores.json").read_text())
    assert scores(run)["held_out"]["tasks"] == 2
    assert (run.folder.parent, run.name) == (folder / "runs", "eval-tiny-start")
    assert {row["policy"] for row in first} == {"untrained", "start", "step 1"}


def test_a_run_is_stopped_in_order_and_then_removed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = folder / "runs"
    settings = [
        f"Campaign.runs = '{runs}'",
        f"BubblewrapSandbox.root = '{folder / 'sandboxes'}'",
        "Campaign.critic_warmup = 500",
        "Campaign.name = 'long'",
    ]
    command = [sys.executable, "-m", "t1x.cli", "run", str(folder / "tiny.gin")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(
        [*command, *(word for text in settings for word in ("--set", text))],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("critic warm-up 2/"):
                break
        assert main(["runs", "rm", "long", "--yes", "--runs", str(runs)]) == 2
        assert "is running (process" in capfd.readouterr().err
        assert main(["runs", "stop", "long", "--runs", str(runs)]) == 0
        process.stdout.read()
        assert process.wait(240) == 130
    finally:
        process.kill()
    (run,) = (each for each in t1x.runs(runs) if each.name == "long")
    assert run.status is Status.KILLED
    said = capfd.readouterr().out
    assert f"{run.folder.name}: killed after 0 of 1 steps" in said
    wait_until_nothing_is_left([], folder / "sandboxes", process.pid)
    store = mlflow.MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    assert run.tracking_id is not None
    assert store.get_run(run.tracking_id).info.status == "KILLED"
    assert main(["runs", "rm", "long", "--yes", "--runs", str(runs)]) == 0
    assert not run.folder.exists()
    assert store.get_run(run.tracking_id).info.lifecycle_stage == "deleted"

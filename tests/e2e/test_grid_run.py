"""Grids of real runs: what happens to one cell touches no other, whatever ends them, and nothing is run twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest
from open_folder import open_folder
from stores import with_store

from t1x.campaign.record import Run, Status, runs
from t1x.config import load
from t1x.model.checkpoint import save_pretrained

pytestmark = pytest.mark.timeout(600)  # some ten processes that each load torch and MLflow
T1X = str(Path(sys.executable).parent / "t1x")

TINY = """
include 'experiments/quickstart.gin'

Campaign.start = @ScratchStart()
Campaign.suites = [@held_out/PoolSuite()]
held_out/PoolSuite.greedy = 2
held_out/PoolSuite.sampled = 0
ShellHarness.max_turns = 1
Campaign.steps = 1
Campaign.batch = 2
Campaign.critic_warmup = 0
Campaign.sandbox = @BubblewrapSandbox()
BubblewrapSandbox.root = '{sandboxes}'
"""
START = """
include 'tiny.gin'

Campaign.name = 'first'
Campaign.steps = 0
"""


@dataclass
class Grid:
    """A grid file in a folder of its own."""

    folder: Path
    sandboxes: Path

    @property
    def file(self) -> Path:
        return self.folder / "pair.gin"

    @property
    def runs_folder(self) -> Path:
        return self.folder / "runs"

    def write(self, axes: str, base: str = "") -> None:
        with_store(self.runs_folder)
        (self.folder / "tiny.gin").write_text(TINY.format(sandboxes=self.sandboxes))
        (self.folder / "base.gin").write_text(f"include 'tiny.gin'\n{base}\n")
        self.file.write_text(f"Grid.base = 'base.gin'\nGrid.axes = {axes}\nGrid.runs = '{self.runs_folder}'\n")

    def start(self, *more: str) -> subprocess.Popen[str]:
        arguments = [T1X, "grid", "run", str(self.file), "--site", "laptop", *more]
        return subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=Path.cwd()
        )

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*more)
        try:
            output, errors = process.communicate(timeout=200)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def running(self, level: str, process: subprocess.Popen[str]) -> Run:
        """Waits until the cell's run has measured something."""
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and process.poll() is None:
            for run in runs(self.runs_folder):
                log = run.folder / "log.jsonl"
                if run.status is Status.RUNNING and run.name.endswith(f"-{level}") and log.is_file() and log.stat().st_size:
                    return run
            time.sleep(0.1)
        pytest.fail(f"{level} wasn't begun: {process.communicate(timeout=10) if process.poll() is not None else ''}")

    def by_level(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for run in runs(self.runs_folder):
            found.setdefault(run.name.rpartition("-")[2], []).append(run)
        return found


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with open_folder() as sandboxes:
        yield Grid(tmp_path, sandboxes)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(sandboxes.iterdir()):
            time.sleep(0.1)
        assert list(sandboxes.iterdir()) == []


def parent_status(grid: Grid) -> str:
    (folder,) = grid.runs_folder.glob("pair-*/")
    client = mlflow.MlflowClient(f"sqlite:///{grid.runs_folder / 'mlflow.db'}")
    return client.get_run(json.loads((folder / "parent.json").read_text())["id"]).info.status


def ended(pid: int, seconds: float = 30) -> bool:
    """Waits for a process that isn't our child."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


REWARDS = "{'reward': {'dense': [], 'binary': ['Campaign.reward = @BinaryReward()']}}"


@pytest.mark.ci
def test_a_grid_that_is_killed_goes_on_where_it_was(grid: Grid) -> None:
    grid.write(REWARDS)
    process = grid.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("reward=dense,seed=0: held_out: resolved rate, greedy"):
                break
        second = grid.running("binary", process)
        other = grid.run()
        assert other.returncode == 2
        assert f"process {process.pid} runs this grid already" in other.stderr
    finally:
        process.kill()
        process.communicate()
    assert ended(second.pid)
    (first,) = grid.by_level()["dense"]
    assert (first.status, [run.status for run in grid.by_level()["binary"]]) == (Status.FINISHED, [Status.KILLED])
    before = (first.folder / "run.json").stat().st_mtime_ns

    planned = grid.run("--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "to run: 1 of 2 cells" in planned.stdout

    again = grid.run()
    assert again.returncode == 0, again.stderr
    assert f"reward=dense,seed=0: finished before, in {first.folder}" in again.stdout
    assert grid.by_level()["dense"] == [first]
    assert (first.folder / "run.json").stat().st_mtime_ns == before
    assert [(run.status, run.resumed) for run in grid.by_level()["binary"]] == [(Status.FINISHED, 1)]

    (folder,) = grid.runs_folder.glob("pair-*/")
    assert "2 of 2 cells have finished." in (folder / "report" / "grid.md").read_text()
    assert (folder / "report" / "grid.png").is_file()
    assert_tracked(grid, folder)


def assert_tracked(grid: Grid, folder: Path) -> None:
    """One parent, which has the report, with a child for each run, that has the cell's tags."""
    client = mlflow.MlflowClient(f"sqlite:///{grid.runs_folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("t1x").experiment_id
    parent_id = json.loads((folder / "parent.json").read_text())["id"]
    found = client.search_runs([experiment], "tags.`axis.reward` = 'binary' and tags.seed = '0'")
    assert {run.data.tags["mlflow.parentRunId"] for run in found} == {parent_id}
    assert [run.info.status for run in found] == ["FINISHED"]
    parent = client.get_run(parent_id)
    assert (parent.info.status, parent.data.tags["grid"]) == ("FINISHED", "pair")
    kept = {file.path for file in client.list_artifacts(parent_id, "report")}
    assert kept == {"report/grid.md", "report/grid.csv", "report/grid.png"}
    assert len(client.search_runs([experiment])) == 3


@pytest.mark.ci
def test_one_cells_end_stops_no_other_and_is_retried(grid: Grid) -> None:
    weights = grid.folder / "weights"
    weights.mkdir()
    start = ["Campaign.start = @CheckpointStart()", f"CheckpointStart.path = '{weights}'"]
    first = grid.folder / "first.gin"
    first.write_text("\n".join([START, *start]))
    other = ["Campaign.start = @CampaignStart()", f"CampaignStart.experiment = '{first}'"]
    grid.write(f"{{'start': {{'scratch': [], 'stored': {start}, 'campaign': {other}}}}}")
    process = grid.start()
    try:
        os.kill(grid.running("scratch", process).pid, signal.SIGKILL)  # as the system does where memory runs out
        output, errors = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 1, errors
    assert "start=scratch,seed=0: ended by SIGKILL, as the system does where memory runs out" in output
    assert f"start=stored,seed=0: error: {weights}" in output
    assert f"start=campaign,seed=0: not run, because its start {first} failed" in output
    assert "3 of 3 cells failed; run the same command again to retry them:" in output
    (log,) = grid.runs_folder.glob("pair-*/cells/start-stored_seed-0.log")
    assert str(log) in output
    assert parent_status(grid) == "FAILED"

    weights.rmdir()
    save_pretrained(load(grid.folder / "tiny.gin").root.model.build(0), weights)
    again = grid.run("--only", "start=stored")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [run.status for run in grid.by_level()["scratch"]] == [Status.KILLED]
    assert [run.status for run in grid.by_level()["stored"]] == [Status.FINISHED]
    assert parent_status(grid) == "FINISHED", "of what was to run, all did"


@pytest.mark.ci
def test_ctrl_c_ends_every_cell_and_waits_for_it(grid: Grid) -> None:
    first = grid.folder / "first.gin"
    first.write_text(START)
    grid.write(REWARDS, f"Campaign.start = @CampaignStart()\nCampaignStart.experiment = '{first}'")
    process = grid.start("--jobs", "2")
    try:
        cells = [grid.running(level, process) for level in ("dense", "binary")]
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert all(not (Path("/proc") / str(run.pid)).exists() for run in cells)
    found = grid.by_level()
    assert [run.status for run in [*found["dense"], *found["binary"]]] == [Status.KILLED, Status.KILLED]
    assert [run.status for run in found["first"]] == [Status.FINISHED]
    assert output.count("run first, once") == 1
    assert output.splitlines()[-1] == "0 of 2 cells finished, 2 interrupted; run the same command to go on"
    assert parent_status(grid) == "KILLED"

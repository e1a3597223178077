"""The shipped grid of 8 cells, each in one tiny step, killed and run again."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from leftovers import wait_until_nothing_is_left
from open_folder import open_folder

from t1x.campaign.record import Run, Status, runs

pytestmark = pytest.mark.timeout(900)
T1X = str(Path(sys.executable).parent / "t1x")
FILE = "experiments/grids/reward_pool_r3.gin"
CELLS = 8


class Grid:
    """A grid in folders of its own."""

    def __init__(self, runs_folder: Path, sandboxes: Path) -> None:
        self.runs_folder, self.sandboxes = runs_folder / "smoke", sandboxes

    def start(self) -> subprocess.Popen[str]:
        places = ["--set", f"Grid.runs = '{self.runs_folder.parent}'", "--set", f"BubblewrapSandbox.root = '{self.sandboxes}'"]
        arguments = [T1X, "grid", "run", FILE, "--site", "laptop", "--smoke", "--jobs", "2", *places]
        return subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=Path.cwd()
        )

    def cells(self, status: Status) -> list[Run]:
        return [run for run in runs(self.runs_folder) if run.status is status and run.name.startswith("reward_pool_r3_")]

    def kill_when(self, finished: int) -> None:
        """Starts it and kills it outright while a run is in the middle of its work and so many cells have finished."""
        process = self.start()
        try:
            deadline = time.monotonic() + 400
            while not (len(self.cells(Status.FINISHED)) >= finished and self._busy()):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        wait_until_nothing_is_left([self.runs_folder], self.sandboxes, process.pid, 60)
        assert not [run for run in runs(self.runs_folder) if run.status is Status.RUNNING]

    def _busy(self) -> bool:
        running = [run for run in runs(self.runs_folder) if run.status is Status.RUNNING]
        return any((run.folder / "log.jsonl").is_file() and (run.folder / "log.jsonl").stat().st_size for run in running)

    def run(self) -> str:
        process = self.start()
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        wait_until_nothing_is_left([self.runs_folder], self.sandboxes, process.pid)
        return output


@pytest.fixture
def grid() -> Iterator[Grid]:
    with open_folder() as folder:
        (folder / "sandboxes").mkdir()
        yield Grid(folder / "runs", folder / "sandboxes")


def check_killed_at(grid: Grid, *moments: int) -> None:
    """Killed once at each moment, then run to its end: nothing that had finished was run again."""
    before: dict[Path, tuple[float, int]] = {}
    for finished in moments:
        grid.kill_when(finished)
        after = written(grid.cells(Status.FINISHED))
        assert before.items() <= after.items()
        before = after
    output = grid.run()
    assert output.count("finished before, in ") == len(before)
    after = written(grid.cells(Status.FINISHED))
    assert before.items() <= after.items()
    assert len(after) == CELLS
    finished = Counter(run.run_digest for run in runs(grid.runs_folder) if run.status is Status.FINISHED)
    assert set(finished.values()) == {1}, "each cell, and each campaign that they start from"
    assert len(finished) > CELLS
    (report,) = grid.runs_folder.glob("reward_pool_r3-*/report/grid.md")
    assert "8 of 8 cells have finished." in report.read_text()
    assert [path.name for path in grid.runs_folder.parent.iterdir()] == ["smoke"], "nothing else is kept in the runs folder"


@pytest.mark.ci
def test_a_grid_that_is_killed_repeats_no_finished_cell(grid: Grid) -> None:
    check_killed_at(grid, 2)


@pytest.mark.soak
def test_a_grid_that_is_killed_again_and_again_repeats_no_finished_cell(grid: Grid) -> None:
    check_killed_at(grid, 0, 0, 1, 3, 5, 7)


def written(found: list[Run]) -> dict[Path, tuple[float, int]]:
    """When each run began and when its record was last written, by its folder."""
    return {run.folder: (run.started, (run.folder / "run.json").stat().st_mtime_ns) for run in found}

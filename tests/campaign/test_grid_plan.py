"""What a grid has done, what it would run, and how long that may take."""

from pathlib import Path

import pytest
from grid_runs import AXES, grid, ran
from rich.console import Console

from t1x.campaign.grid_plan import Guess, plan, sizes_digest, total
from t1x.campaign.record import Status
from t1x.campaign.resolve_cells import Cells, resolve_cells
from t1x.cli.grid_table import dry_run_tables, dry_run_text
from t1x.config import load


def states(cells: Cells) -> list[str]:
    return [cell.state for cell in plan(cells, cells.experiments).cells]


def test_a_cell_stands_as_its_runs_do(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    first, second, third, _ = cells.experiments
    ran(cells, first, started=1)
    ran(cells, first, Status.FAILED, started=2)
    ran(cells, second, Status.FAILED, started=1)
    ran(cells, second, Status.KILLED, started=2)
    ran(cells, third, Status.RUNNING)
    assert states(cells) == ["finished", "killed", "killed", "new"]
    due = [cell.experiment for cell in plan(cells, cells.experiments).due]
    assert due == [second, third, cells.experiments[3]]


def test_other_runs_of_the_folder_finish_no_cell(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0])
    assert states(grid(tmp_path, "Grid.seeds = (1,)")) == ["new"] * 4


def test_times_are_judged_by_the_cells_own_run_or_by_runs_of_its_sizes(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0], seconds=100.0)
    ran(cells, cells.experiments[1], seconds=40.0)
    ran(cells, cells.experiments[2], Status.FAILED, seconds=1.0)
    guesses = [cell.guess for cell in plan(cells, cells.experiments).cells]
    same = Guess(70.0, "mean of 2 finished runs of these sizes")
    assert guesses == [Guess(100.0, "this cell's finished run"), Guess(40.0, "this cell's finished run"), same, same]
    larger = resolve_cells(load(tmp_path / "small.gin"), set=["Campaign.batch = 512"])
    assert [cell.guess for cell in plan(larger, larger.experiments).cells] == [None] * 4


def test_sizes_are_neither_the_seed_nor_what_is_studied() -> None:
    def of(*settings: str) -> str:
        return sizes_digest(load("experiments/quickstart.gin", set=settings).root)

    assert of() == of("Campaign.seed = 5") == of("Campaign.reward = @BinaryReward()") == of("Campaign.threads = 7")
    assert of() != of("Campaign.batch = 8")
    assert of() != of("Campaign.steps = 3")


@pytest.mark.parametrize(("jobs", "seconds"), [(1, 300.0), (2, 200.0), (3, 100.0), (9, 100.0)])
def test_the_total_is_that_of_so_many_at_a_time(tmp_path: Path, jobs: int, seconds: float) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0], seconds=100.0)
    assert total(plan(cells, cells.experiments), jobs) == (seconds, True)


def test_a_total_of_nothing_known(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    assert total(plan(cells, cells.experiments), 1) == (0.0, False)


def test_what_a_dry_run_prints(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    assert "4 of 4 cells, 1 at a time: unknown (no run in" in dry_run_text(cells, plan(cells, cells.experiments), 1)
    ran(cells, cells.experiments[0], seconds=120.0)
    planned = plan(cells, cells.experiments)
    console = Console(width=120)
    with console.capture() as capture:
        for table in dry_run_tables(planned):
            console.print(table)
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in capture.get().splitlines() if line.startswith("│")]
    assert rows[0] == ["reward=dense,r3=on", "0", cells.experiments[0].digest, "finished", "2 min"]
    assert rows[1] == ["reward=dense,r3=off", "0", cells.experiments[1].digest, "new", "2 min"]
    assert "3 of 4 cells, 2 at a time: 4 min (estimated from: a finished run of these sizes)" in dry_run_text(cells, planned, 2)


def test_starts_that_cells_share_are_due_once(tmp_path: Path) -> None:
    (tmp_path / "base.gin").write_text(
        "include 'experiments/quickstart.gin'\nCampaign.start = @CampaignStart()\n"
        "CampaignStart.experiment = 'experiments/quickstart.gin'\n"
    )
    path = tmp_path / "small.gin"
    path.write_text(f"Grid.base = 'base.gin'\nGrid.axes = {AXES}\nGrid.runs = '{tmp_path / 'runs'}'\n")
    cells = resolve_cells(load(path))
    (start,) = plan(cells, cells.experiments).starts
    assert start.start.experiment == "experiments/quickstart.gin"
    for each in cells.experiments:
        ran(cells, each)
    assert plan(cells, cells.experiments).starts == ()

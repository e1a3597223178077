"""Grids over the quickstart whose runs are only records: what a real run leaves, without running it."""

from pathlib import Path

from t1x.campaign.record import Measured, Run, Status
from t1x.campaign.resolve_cells import CellExperiment, Cells, resolve_cells
from t1x.config import dump, load

AXES = """{
    'reward': {'dense': [], 'binary': ['Campaign.reward = @BinaryReward()']},
    'r3': {'on': [], 'off': ['Campaign.router = @FreeRouting()']},
}"""


def write_grid(folder: Path, axes: str = AXES, *more: str) -> Path:
    """A grid file that keeps its runs beside it."""
    lines = ["Grid.base = 'experiments/quickstart.gin'", f"Grid.axes = {axes}", f"Grid.runs = '{folder / 'runs'}'", *more]
    path = folder / "small.gin"
    path.write_text("\n".join(lines) + "\n")
    return path


def grid(folder: Path, *more: str, axes: str = AXES) -> Cells:
    return resolve_cells(load(write_grid(folder, axes, *more)))


def ran(cells: Cells, each: CellExperiment, status: Status = Status.FINISHED, *, started: float = 1.0, **more: object) -> Run:
    """The record of a cell's run."""
    folder = cells.grid.runs / f"{each.root.name}-{each.digest[:8]}-{each.cell.seed}-{started:g}"
    folder.mkdir(parents=True)
    (folder / "config.gin").write_text(dump(each.root))
    run = Run(
        folder=folder,
        name=each.root.name,
        kind="Campaign",
        run_digest=each.digest,
        study_digest="0" * 16,
        seed=each.cell.seed,
        site=None,
        experiment="",
        status=status,
        started=started,
        **{"seconds": 60.0, **more},
    )
    return run.save()


def scored(rate: float, se: float | None = 0.05) -> dict[str, dict[str, Measured]]:
    return {"held_out": {"resolved_rate": Measured(rate, se, 40), "partial_credit": Measured(rate / 2, se, 40)}}

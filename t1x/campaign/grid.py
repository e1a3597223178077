"""The root of an ablation grid."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from t1x.config import Origins, Resolved, Role, Root
from t1x.tracking.log import check_name

if TYPE_CHECKING:
    from t1x.campaign.grid_run import Failure

AxisName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]\w*$")]
"""Part of a tag's name (`axis.reward`) and of file names."""
LevelName = Annotated[str, StringConstraints(pattern=r"^[\w.]+(-[\w.]+)*$")]
Levels = dict[LevelName, tuple[str, ...]]
"""Level name to the Gin texts that make it, e.g. `{'dense': [], 'binary': ['Campaign.reward = @BinaryReward()']}`."""


class Grid(Root):
    """One experiment in every combination of some changes to it, each with every seed. Cells share seeds, and so tasks and random
    streams."""

    base: str
    """The experiment that is varied, a file as `include` names it."""
    axes: dict[AxisName, Levels]
    """Axis name to its levels, in the order in which they are shown."""
    seeds: tuple[int, ...] = (0,)
    """Each cell is run once with each of them."""
    baseline: dict[str, str] = Field(default_factory=dict)
    """Axis name to the level that others are compared with; the first level of an axis that isn't named."""
    exclude: tuple[dict[str, str], ...] = ()
    """Combinations that aren't run: cells that have all of the given levels."""
    metrics: tuple[str, ...] = ()
    """Training metrics that are compared beside the suites, such as `mismatch/engine_gap`: of a run the mean over its training
    steps."""
    runs: Annotated[Path, Role.PLACEMENT] = Path("runs")
    """Folder that gets one folder a run, and one for the grid; cells keep theirs here whatever the experiment says."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        if not self.axes or not all(self.axes.values()):
            raise ValueError("axes needs at least one axis, and each axis a level; e.g. {'reward': {'dense': [], 'binary': [...]}}")
        if "seed" in self.axes:
            raise ValueError("an axis can't be called seed, which every cell has; use seeds")
        for what, levels in [("baseline", self.baseline), *(("exclude", levels) for levels in self.exclude)]:
            for axis, level in levels.items():
                if axis not in self.axes:
                    raise ValueError(f"{what} names the axis {axis!r}; there are {', '.join(self.axes)}")
                if level not in self.axes[axis]:
                    raise ValueError(f"{what} names the level {level!r} of {axis}; there are {', '.join(self.axes[axis])}")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds needs at least one number, each once")
        for name in self.metrics:
            check_name("metrics names", name)
        return self

    @model_validator(mode="after")
    def _baseline_is_run(self) -> Self:
        if self.excludes(self.baseline_levels):
            cell = ",".join(f"{axis}={level}" for axis, level in self.baseline_levels.items())
            raise ValueError(f"exclude leaves out {cell}, which the others are compared with; set baseline to a cell that is run")
        return self

    @property
    def baseline_levels(self) -> dict[str, str]:
        """The level of each axis that others are compared with."""
        return {axis: self.baseline.get(axis, next(iter(levels))) for axis, levels in self.axes.items()}

    def excludes(self, levels: dict[str, str]) -> bool:
        """Whether a combination (axis to level, every axis) isn't run."""
        return any(left_out.items() <= levels.items() for left_out in self.exclude)

    def run(self, file: Path | None = None, origins: Origins | None = None) -> "list[Failure]":
        """Runs every cell that hasn't finished, one after the other, and returns those that failed."""
        from rich.console import Console

        from t1x.campaign.grid_plan import plan
        from t1x.campaign.grid_run import run_grid
        from t1x.campaign.resolve_cells import resolve_cells

        cells = resolve_cells(Resolved(self, origins or {}, (), file or Path("grid.gin")), site=self.site)
        return run_grid(cells, plan(cells, cells.experiments), 1, Console())

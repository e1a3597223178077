"""The root of an ablation grid."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from t1x.config import Role, Root

Levels = dict[str, tuple[str, ...]]
"""Level name to the Gin texts that make it, e.g. `{'dense': [], 'binary': ['Campaign.reward = @BinaryReward()']}`."""


class Grid(Root):
    """One experiment in every combination of some changes to it, each with every seed. Cells share seeds, and so tasks and random
    streams."""

    base: str
    """The experiment that is varied, a file as `include` names it."""
    axes: dict[str, Levels]
    """Axis name to its levels, in the order in which they are shown."""
    seeds: tuple[int, ...] = (0,)
    """Each cell is run once with each of them."""
    baseline: dict[str, str] = Field(default_factory=dict)
    """Axis name to the level that others are compared with; the first level of an axis that isn't named."""
    exclude: tuple[dict[str, str], ...] = ()
    """Combinations that aren't run: cells that have all of the given levels."""
    runs: Annotated[Path, Role.PLACEMENT] = Path("runs")
    """Folder that gets one folder a run, and one for the grid."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        if not self.axes or not all(self.axes.values()):
            raise ValueError("axes needs at least one axis, and each axis a level; e.g. {'reward': {'dense': [], 'binary': [...]}}")
        for what, levels in [("baseline", self.baseline), *(("exclude", levels) for levels in self.exclude)]:
            for axis, level in levels.items():
                if axis not in self.axes:
                    raise ValueError(f"{what} names the axis {axis!r}; there are {', '.join(self.axes)}")
                if level not in self.axes[axis]:
                    raise ValueError(f"{what} names the level {level!r} of {axis}; there are {', '.join(self.axes[axis])}")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds needs at least one number, each once")
        return self

"""The cells of a grid: which there are, and what they are called.

Invariants:
- every combination of levels that isn't excluded comes once with every seed; the last axis changes fastest, seeds faster still;
- a cell's name and file name are its own within the grid and don't depend on which other cells there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from t1x.campaign.grid import Grid
from t1x.config.names import closest

SEED = "seed"
"""What `--only` calls it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels with one seed."""

    levels: tuple[tuple[str, str], ...]
    """(axis, level) of every axis, in the order of the grid."""
    seed: int

    @property
    def combination(self) -> str:
        """`reward=dense,r3=on`."""
        return ",".join(f"{axis}={level}" for axis, level in self.levels)

    @property
    def name(self) -> str:
        """`reward=dense,r3=on,seed=0`."""
        return f"{self.combination},{SEED}={self.seed}"

    @property
    def folder_name(self) -> str:
        """`reward-dense_r3-on`, the combination in what a folder's name can hold."""
        return "_".join(f"{axis}-{level}" for axis, level in self.levels)

    @property
    def file_name(self) -> str:
        """`reward-dense_r3-on_seed-0`."""
        return f"{self.folder_name}_{SEED}-{self.seed}"

    def marks(self) -> set[tuple[str, str]]:
        """Every (axis, level), the seed among them."""
        return {*self.levels, (SEED, str(self.seed))}


def expand(grid: Grid) -> list[Cell]:
    """Every cell. Raises `ValueError` where exclusions leave none, or where two would be kept in one file."""
    axes = [[(axis, level) for level in levels] for axis, levels in grid.axes.items()]
    combinations = [combination for combination in product(*axes) if not grid.excludes(dict(combination))]
    cells = [Cell(combination, seed) for combination in combinations for seed in grid.seeds]
    first: dict[str, Cell] = {}
    for cell in cells:
        other = first.setdefault(cell.file_name, cell)
        if other is not cell:
            raise ValueError(f"{other.name} and {cell.name} would both be kept as {cell.file_name}; rename a level of one")
    return cells


def select(cells: Sequence[Cell], grid: Grid, only: Iterable[str]) -> list[Cell]:
    """The cells that `only` leaves: texts `axis=level` (`seed=1` too); of several that name one axis, either will do. Raises
    `ValueError` for a name that the grid doesn't have."""
    levels = {**{axis: [*levels] for axis, levels in grid.axes.items()}, SEED: [str(seed) for seed in grid.seeds]}
    wanted: dict[str, set[str]] = {}
    for text in only:
        axis, equals, level = (part.strip() for part in text.partition("="))
        if not equals:
            raise ValueError(f"--only {text!r}: write axis=level, e.g. --only {cells[0].name.partition(',')[0]}")
        if axis not in levels:
            raise ValueError(f"--only {text!r}: there is no axis {axis}{closest(axis, levels)}; there are {', '.join(levels)}")
        if level not in levels[axis]:
            options = levels[axis]
            raise ValueError(f"--only {text!r}: {axis} has no level {level}{closest(level, options)}; it has {', '.join(options)}")
        wanted.setdefault(axis, set()).add(level)
    left = [cell for cell in cells if all(any((axis, level) in cell.marks() for level in wanted[axis]) for axis in wanted)]
    if not left:
        raise ValueError(f"no cell has {' and '.join('/'.join(sorted(wanted[axis])) for axis in wanted)}: the grid excludes them")
    return left


def described(some: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """`some` of a grid's cells in a few words: `every cell`, what only they have in common (`reward=binary`), or their names."""
    if len(some) == len(cells):
        return "every cell"
    common = set.intersection(*(cell.marks() for cell in some))
    if common and len(some) > 1 and sum(common <= cell.marks() for cell in cells) == len(some):
        return ",".join(
            f"{axis}={level}" for axis, level in [*some[0].levels, (SEED, str(some[0].seed))] if (axis, level) in common
        )
    more = f" and {len(some) - 3} more" if len(some) > 3 else ""
    return ", ".join(cell.name for cell in some[:3]) + more

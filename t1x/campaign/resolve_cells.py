"""The cells of a grid as experiments: each is loaded and validated, and told from the others, before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

from t1x.campaign.cells import Cell, described, expand
from t1x.campaign.experiment import Experiment
from t1x.campaign.grid import Grid
from t1x.campaign.identity import Prerequisite, resolve_starts, run_digest_with
from t1x.campaign.smoke import FOLDER
from t1x.config import ConfigError, Origin, Problem, Resolved, Setting, load
from t1x.config.digest import digest
from t1x.config.names import closest, with_article
from t1x.config.places import find, shown, siblings
from t1x.config.problem import SETTING
from t1x.config.smoke import shrink
from t1x.config.statement import Binding, parse


@dataclass(frozen=True, slots=True)
class CellExperiment:
    """A cell and the experiment that it is."""

    cell: Cell
    root: Experiment
    digest: str
    """Of the run, starts included; see `run_digest_of`."""
    starts: tuple[Prerequisite, ...]
    """What it starts from."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A grid, resolved."""

    grid: Grid
    name: str
    """The grid file's name without its ending."""
    base: Path
    """The experiment that is varied."""
    experiments: tuple[CellExperiment, ...]
    """Every cell, in the grid's order."""
    notes: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of all cells: what tells this grid's folder from that of the same file before it was changed."""
        return digest([[each.cell.name, each.digest] for each in self.experiments])

    @property
    def folder(self) -> Path:
        """The grid's own folder in the runs folder."""
        return self.grid.runs / f"{self.name}-{self.digest[:8]}"

    @property
    def has_smoke_test(self) -> bool:
        """Whether a grid of this name was smoke-tested."""
        return any((self.grid.runs / FOLDER).glob(f"{escape(self.name)}-*/cells"))


def resolve_cells(file: Resolved, *, site: str | None = None, set: Sequence[str | Setting] = (), smoke: bool = False) -> Cells:
    """Loads every cell of a loaded grid: its base on the site, the texts of its levels, then `set`. Raises `ConfigError` with every
    problem of every cell, each once with the cells that have it, and `ValueError` where two cells would run the same. With `smoke`
    each is cut to one tiny step, and all that the grid keeps lies in the folder `smoke` of the runs folder."""
    grid = file.root
    assert isinstance(grid, Grid)
    if smoke:
        grid = grid.model_copy(update={"runs": grid.runs / FOLDER})
    cells = expand(grid)
    base = _base(grid, file)
    problems: dict[Problem, list[Cell]] = {}
    notes: dict[str, None] = {}
    made: dict[str, tuple[Experiment, tuple[Prerequisite, ...]]] = {}
    for cell in cells:
        if cell.combination not in made:
            try:
                resolved = load(base, site=site, set=[*_settings(grid, cell, file), *set])
                root = _placed(_experiment(resolved, smoke), grid, cell, file)
                made[cell.combination] = root, resolve_starts(root, resolved.origins)
            except ConfigError as error:
                for problem in error.problems:
                    problems.setdefault(problem, []).append(cell)
                continue
            notes |= dict.fromkeys(resolved.notes)
    if problems:
        raise ConfigError(
            replace(problem, message=f"{problem.message} (in {described(having, cells)})") for problem, having in problems.items()
        )
    experiments = [_with_seed(cell, *made[cell.combination]) for cell in cells]
    _require_different(experiments)
    return Cells(grid, file.path.stem, base, tuple(experiments), tuple(notes))


def of_grid(text: str) -> bool:
    """Whether a Gin text, the value of a `--set`, is about the grid itself rather than its cells."""
    statements, _ = parse(text, lambda line: Origin(SETTING))
    return any(isinstance(each, Binding) and each.component == Grid.__name__ for each in statements)


def _base(grid: Grid, file: Resolved) -> Path:
    base = find(grid.base, beside=file.path.parent)
    if base is None:
        message = f"there is no file {grid.base}{closest(grid.base, siblings(grid.base))}"
        raise ConfigError([Problem(message, file.origins["Grid.base"])])
    return base


def _settings(grid: Grid, cell: Cell, file: Resolved) -> list[Setting]:
    """The Gin texts of a cell's levels. Each says where the axes stand and which level it is."""
    place = file.origins["Grid.axes"]
    where = str(place) if place else shown(file.path)
    return [
        Setting(text, Origin(f"{where} {axis}={level}", None, text))
        for axis, level in cell.levels
        for text in grid.axes[axis][level]
    ]


def _experiment(resolved: Resolved, smoke: bool) -> Experiment:
    root = resolved.root
    name = type(root).__name__
    if not isinstance(root, Experiment):
        raise ValueError(
            f"{shown(resolved.path)} describes {with_article(name)}; what a grid varies is a Campaign or an Evaluation"
        )
    seed = resolved.origins.get(f"{name}.seed")
    if seed is not None and seed.text is not None:
        raise ValueError(f"{seed}: the seeds of a grid's cells are Grid.seeds; set that instead")
    return shrink(root) if smoke else root


def _placed(root: Experiment, grid: Grid, cell: Cell, file: Resolved) -> Experiment:
    return root.model_copy(update={"runs": grid.runs, "name": f"{file.path.stem}_{cell.folder_name}"})


def _with_seed(cell: Cell, root: Experiment, starts: tuple[Prerequisite, ...]) -> CellExperiment:
    seeded = root.model_copy(update={"seed": cell.seed})
    return CellExperiment(cell, seeded, run_digest_with(seeded, starts), starts)


def _require_different(experiments: Sequence[CellExperiment]) -> None:
    first: dict[str, Cell] = {}
    for each in experiments:
        other = first.setdefault(each.digest, each.cell)
        if other is not each.cell:
            raise ValueError(
                f"the cells {other.name} and {each.cell.name} don't differ in anything that is run (run digest {each.digest}); "
                f"their levels say the same as the base experiment or as each other: change or exclude one"
            )

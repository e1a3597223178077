"""A grid's runs as numbers: each combination of levels in each measure, and the effect of each axis.

Only the last policy of a finished run counts: a better checkpoint in between is never picked.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from t1x.campaign.estimate import Estimate, Value, differences, main_effect, over_seeds
from t1x.campaign.grid import Grid
from t1x.campaign.grid_plan import NEW
from t1x.campaign.record import Run, Status, latest, runs
from t1x.campaign.resolve_cells import Cells
from t1x.campaign.training_means import TRAINING, with_training_means

Levels = tuple[tuple[str, str], ...]
Measure = tuple[str, str]
"""Suite and what is measured on it; `TRAINING` and a training metric."""
WITHOUT = "without it"
Found = dict[Levels, dict[int, Run | None]]
"""Combination to each of its seeds to its finished run, with its training metrics among its scores, or the newest that isn't."""


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of levels in one measure."""

    levels: Levels
    seeds: int
    """That it should have."""
    value: Estimate | None
    """None where no seed has finished."""
    difference: Estimate | None
    """From the baseline, by the seeds that both have; None for the baseline itself and where there is none."""
    missing: str
    """How the runs whose values aren't there stand, e.g. `1 failed, 1 new`, or `1 without it`; empty where there are all."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A level against its axis's baseline, averaged over the other axes."""

    axis: str
    level: str
    baseline: str
    value: Estimate | None
    pairs: int
    due: int
    """Pairs that the grid has when all of it has finished."""


@dataclass(frozen=True, slots=True)
class Table:
    """A grid in one measure."""

    measure: Measure
    rows: tuple[Row, ...]
    effects: tuple[Effect, ...]


def newest(cells: Cells) -> Found:
    """The runs of a grid's cells."""
    by_digest = latest(runs(cells.grid.runs))
    found: Found = {}
    for each in cells.experiments:
        run = by_digest.get(each.digest)
        if run is not None and run.status is Status.FINISHED:
            run = with_training_means(run, cells.grid.metrics)
        found.setdefault(each.cell.levels, {})[each.cell.seed] = run
    return found


def measures(grid: Grid, found: Found) -> list[Measure]:
    """The grid's training metrics, then every measure that some finished run has: what each suite is judged by, and the others."""
    others = ((suite, measure) for run in finished(found) for suite, named in run.scores.items() for measure in named)
    return list(dict.fromkeys([*judged(grid, found), *others]))


def judged(grid: Grid, found: Found) -> list[Measure]:
    """The grid's training metrics, and what each suite is judged by."""
    metrics = [(TRAINING, name) for name in grid.metrics] if finished(found) else []
    return list(dict.fromkeys([*metrics, *(measure for run in finished(found) for measure in headlines(run))]))


def headlines(run: Run) -> list[Measure]:
    """What each suite of a run is judged by: the first that it measures."""
    return [(suite, next(iter(named))) for suite, named in run.scores.items() if named and suite != TRAINING]


def finished(found: Found) -> list[Run]:
    """The runs that have finished."""
    return [run for by_seed in found.values() for run in by_seed.values() if run and run.status is Status.FINISHED]


def tabulate(grid: Grid, found: Found, measure: Measure) -> Table:
    """One measure of all cells."""
    values = {levels: _values(by_seed, measure) for levels, by_seed in found.items()}
    baseline = tuple(grid.baseline_levels.items())
    rows = [
        Row(
            levels,
            len(by_seed),
            over_seeds(values[levels]),
            None if levels == baseline else over_seeds(differences(values[levels], values[baseline])),
            _missing(by_seed, measure),
        )
        for levels, by_seed in found.items()
    ]
    return Table(measure, tuple(rows), tuple(_effects(grid, values)))


def _effects(grid: Grid, values: Mapping[Levels, Mapping[int, Value]]) -> list[Effect]:
    effects = []
    for axis, levels in grid.axes.items():
        reference = grid.baseline_levels[axis]
        for level in levels:
            if level == reference:
                continue
            pairs = [
                (values[each], values[other])
                for each in values
                if dict(each)[axis] == level and (other := _with(each, axis, reference)) in values
            ]
            estimate, counted = main_effect(pairs)
            effects.append(Effect(axis, level, reference, estimate, counted, len(pairs) * len(grid.seeds)))
    return effects


def _with(levels: Levels, axis: str, level: str) -> Levels:
    return tuple((name, level if name == axis else own) for name, own in levels)


def _values(by_seed: Mapping[int, Run | None], measure: Measure) -> dict[int, Value]:
    suite, name = measure
    values = {}
    for seed, run in by_seed.items():
        score = run.scores.get(suite, {}).get(name) if run and run.status is Status.FINISHED else None
        if score is not None:
            over = "one seed" if suite == TRAINING else "tasks"
            values[seed] = Value(score.mean, math.nan if score.se is None else score.se, over)
    return values


def _missing(by_seed: Mapping[int, Run | None], measure: Measure) -> str:
    have = _values(by_seed, measure)
    lacking = [run for seed, run in by_seed.items() if seed not in have]
    states = [NEW if run is None else WITHOUT if run.status is Status.FINISHED else run.status.value for run in lacking]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))

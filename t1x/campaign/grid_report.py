"""What a grid says so far: `report/grid.md`, `grid.csv` and `grid.png` in its folder.

Only the last policy of a finished run counts: a better checkpoint in between is never picked. What wasn't run to its end is shown
as missing.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.estimate import Estimate, Value, differences, main_effect, over_seeds
from t1x.campaign.grid import Grid
from t1x.campaign.grid_plan import NEW
from t1x.campaign.record import Run, Status, runs
from t1x.campaign.resolve_cells import Cells
from t1x.config.places import shown
from t1x.tracking.dots import Dot, dots

Levels = tuple[tuple[str, str], ...]
Measure = tuple[str, str]
"""Suite and what is measured on it."""

ABOUT = """Each value is that of the last policy of its run; no checkpoint is picked. Over several seeds, ± is the standard error of
the mean over seeds; a value with (tasks) has one seed, and its ± is the standard error over tasks, which knows nothing of other
seeds. Differences are paired by seed."""


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
    """How the runs that aren't there stand, e.g. `1 failed, 1 new`; empty where there are all."""


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


def write_grid_report(cells: Cells) -> list[Path]:
    """Writes what there is so far; returns the files. The figure needs a finished run."""
    found = newest(cells)
    tables = [tabulate(cells.grid, found, measure) for measure in measures(found)]
    folder = cells.folder / "report"
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "grid.md", folder / "grid.csv"]
    written[0].write_text(as_markdown(cells, found, tables), encoding="utf-8")
    written[1].write_text(as_csv(cells.grid, tables), encoding="utf-8")
    figure = folder / "grid.png"
    figure.unlink(missing_ok=True)
    if tables:
        panels = {_title(table.measure): [_dot(row) for row in table.rows] for table in tables}
        dots(figure, panels, group=next(iter(cells.grid.axes)), title=cells.folder.name)
        written.append(figure)
    return written


Found = dict[Levels, dict[int, Run | None]]
"""Combination to each of its seeds to its finished run, or the newest that isn't."""


def newest(cells: Cells) -> Found:
    """The runs of a grid's cells."""
    by_digest: dict[str, Run] = {}
    for run in runs(cells.grid.runs):
        known = by_digest.setdefault(run.run_digest, run)
        if run.status is Status.FINISHED and known.status is not Status.FINISHED:
            by_digest[run.run_digest] = run
    found: Found = {}
    for each in cells.experiments:
        found.setdefault(each.cell.levels, {})[each.cell.seed] = by_digest.get(each.digest)
    return found


def measures(found: Found) -> list[Measure]:
    """Every measure that some finished run has, in the order in which runs have them."""
    finished = [run for by_seed in found.values() for run in by_seed.values() if run and run.status is Status.FINISHED]
    return list(dict.fromkeys((suite, measure) for run in finished for suite, named in run.scores.items() for measure in named))


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
            values[seed] = Value(score.mean, math.nan if score.se is None else score.se)
    return values


def _missing(by_seed: Mapping[int, Run | None], measure: Measure) -> str:
    have = _values(by_seed, measure)
    states = [run.status.value if run else NEW for seed, run in by_seed.items() if seed not in have]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))


def _dot(row: Row) -> Dot:
    (_, group), *others = row.levels
    label = ", ".join(f"{axis} {level}" for axis, level in others)
    value = row.value
    return Dot(group, label, None if value is None else value.mean, 0.0 if value is None else value.error)


def _title(measure: Measure) -> str:
    suite, name = measure
    return f"{suite}: {name.replace('_', ' ')}"


def as_markdown(cells: Cells, found: Found, tables: Sequence[Table]) -> str:
    """The report for a reader."""
    grid = cells.grid
    every = [run for by_seed in found.values() for run in by_seed.values()]
    done = sum(run is not None and run.status is Status.FINISHED for run in every)
    baseline = ", ".join(f"{axis}={level}" for axis, level in grid.baseline_levels.items())
    parts = [
        f"# {cells.name}",
        f"Base: {shown(cells.base)}. Baseline: {baseline}. Seeds: {', '.join(map(str, grid.seeds))}. Grid {cells.digest}.",
        f"{done} of {len(every)} cells have finished." + ("" if tables else " There is nothing to compare yet."),
        ABOUT,
    ]
    for table in tables:
        parts += [f"## {_title(table.measure)}", _cells_table(grid, table)]
        if table.effects:
            parts += ["Effect of each level against its axis's baseline, averaged over the other axes:", _effects_table(table)]
    return "\n\n".join(parts) + "\n"


def _cells_table(grid: Grid, table: Table) -> str:
    baseline = tuple(grid.baseline_levels.items())
    lines = [[*grid.axes, "seeds", "mean ± se", "against baseline"]]
    for row in table.rows:
        against = "(baseline)" if row.levels == baseline else _told(row.difference, "+")
        seeds = f"{row.value.seeds if row.value else 0} of {row.seeds}" + (f" ({row.missing})" if row.missing else "")
        lines.append([*(level for _, level in row.levels), seeds, _told(row.value, ""), against])
    return _markdown_table(lines)


def _effects_table(table: Table) -> str:
    lines = [["axis", "level", "against", "effect ± se", "seeds", "pairs of cells"]]
    for effect in table.effects:
        seeds = str(effect.value.seeds if effect.value else 0)
        pairs = f"{effect.pairs} of {effect.due}"
        lines.append([effect.axis, effect.level, effect.baseline, _told(effect.value, "+"), seeds, pairs])
    return _markdown_table(lines)


def _told(estimate: Estimate | None, sign: str) -> str:
    if estimate is None:
        return "missing"
    error = "?" if math.isnan(estimate.error) else f"{estimate.error:.3f}"
    return f"{estimate.mean:{sign}.3f} ± {error}" + ("" if estimate.over == "seeds" else " (tasks)")


def _markdown_table(lines: Sequence[Sequence[str]]) -> str:
    head, *rows = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def as_csv(grid: Grid, tables: Sequence[Table]) -> str:
    """A line for each combination in each measure; what is missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    numbers = ["mean", "stderr", "stderr_over", "seeds"]
    writer.writerow(["suite", "measure", *grid.axes, "seeds_due", *numbers, *(f"difference_{name}" for name in numbers), "missing"])
    for table in tables:
        for row in table.rows:
            levels = [level for _, level in row.levels]
            writer.writerow([*table.measure, *levels, row.seeds, *_numbers(row.value), *_numbers(row.difference), row.missing])
    return text.getvalue()


def _numbers(estimate: Estimate | None) -> list[object]:
    if estimate is None:
        return ["", "", "", 0]
    return [estimate.mean, "" if math.isnan(estimate.error) else estimate.error, estimate.over, estimate.seeds]

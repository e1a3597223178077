"""What a grid says so far: `report/grid.md`, `grid.csv` and `grid.png` in its folder.

What wasn't run to its end is shown as missing.
"""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from t1x.campaign.estimate import Estimate
from t1x.campaign.grid import Grid
from t1x.campaign.grid_tables import Found, Measure, Row, Table, finished, judged, measures, newest, tabulate
from t1x.campaign.resolve_cells import Cells
from t1x.campaign.training_means import TRAINING, logged
from t1x.campaign.wording import with_error
from t1x.config.names import closest
from t1x.config.places import shown
from t1x.tracking.dots import Dot, dots

ABOUT = """A suite's value is that of the last policy of a run; no checkpoint is picked. A training metric's is its mean over all
training steps of a run. Over several seeds, ± is the standard error of the mean over seeds. A value with (tasks) has one seed, and
its ± is the standard error over tasks, which knows nothing of other seeds; a training metric of one seed has no error. Differences
are paired by seed."""


def write_grid_report(cells: Cells) -> list[Path]:
    """Writes what there is so far; returns the files, none where no cell has finished."""
    found = newest(cells)
    if not finished(found):
        return []
    tables = [tabulate(cells.grid, found, measure) for measure in measures(cells.grid, found)]
    folder = cells.folder / "report"
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "grid.md", folder / "grid.csv"]
    written[0].write_text(as_markdown(cells, found, tables), encoding="utf-8")
    written[1].write_text(as_csv(cells.grid, tables), encoding="utf-8")
    figure = folder / "grid.png"
    figure.unlink(missing_ok=True)
    if tables:
        drawn = judged(cells.grid, found)
        panels = {_axis(table): [_dot(row) for row in table.rows] for table in tables if table.measure in drawn}
        dots(figure, panels, group=next(iter(cells.grid.axes)), title=cells.folder.name)
        written.append(figure)
    return written


def _dot(row: Row) -> Dot:
    (_, group), *others = row.levels
    label = ", ".join(f"{axis} {level}" for axis, level in others)
    value = row.value
    return Dot(group, label, None if value is None else value.mean, 0.0 if value is None else value.error)


def _axis(table: Table) -> str:
    """What a panel's axis says: the measure, and over what its bars are."""
    over = sorted({row.value.over for row in table.rows if row.value and not math.isnan(row.value.error)})
    return title(table.measure) + (f" (bars: standard error over {' or '.join(over)})" if over else "")


def title(measure: Measure) -> str:
    """`held_out: resolved rate, greedy`; `mismatch/engine_gap, mean over training steps`."""
    suite, name = measure
    if suite == TRAINING:
        return f"{name}, mean over training steps"
    words = name.removesuffix("_greedy").replace("_", " ")
    return f"{suite}: {words}" + (", greedy" if name.endswith("_greedy") else "")


def how_many(found: Found) -> str:
    """`3 of 4 cells have finished`."""
    return f"{len(finished(found))} of {sum(map(len, found.values()))} cells have finished"


def as_markdown(cells: Cells, found: Found, tables: Sequence[Table]) -> str:
    """The report for a reader."""
    grid = cells.grid
    baseline = ", ".join(f"{axis}={level}" for axis, level in grid.baseline_levels.items())
    parts = [
        f"# {cells.name}",
        f"Base: {shown(cells.base)}. Baseline: {baseline}. Seeds: {', '.join(map(str, grid.seeds))}. Grid {cells.digest}.",
        f"{how_many(found)}." + ("" if tables else " None of them has measured anything."),
        ABOUT,
    ]
    for table in tables:
        parts += [f"## {title(table.measure)}", *_unlogged(found, table), _cells_table(grid, table)]
        if table.effects:
            parts += ["Effect of each level against its axis's baseline, averaged over the other axes:", _effects_table(table)]
    return "\n\n".join(parts) + "\n"


def _unlogged(found: Found, table: Table) -> list[str]:
    """What to say of a training metric that no run has."""
    suite, name = table.measure
    if suite != TRAINING or any(row.value for row in table.rows):
        return []
    hint = closest(name, (each for run in finished(found) for each in logged(run)))
    return [f"No run that has finished has this metric{hint or '.'}"]


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
    return with_error(estimate.mean, estimate.error, sign) + ("" if estimate.over == "seeds" else f" ({estimate.over})")


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

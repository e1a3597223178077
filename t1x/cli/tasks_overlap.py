"""`t1x tasks overlap`, from the pools to the exit code."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from t1x.campaign.progress import ProgressReport
from t1x.cli.pool_target import PoolTarget
from t1x.config.requirements import NotHere, missing
from t1x.curation.candidates import candidates
from t1x.curation.overlap import Overlap, Pair, overlap, texts
from t1x.curation.statistics import percentile
from t1x.tasks.task import Task

WIDTH = 130
"""Columns that the names have at least: they are to be copied, and a narrow terminal wraps a line by itself."""
STEPS = 10
"""Ranges of scores that held-out tasks are counted in."""


def compare_pools(target: PoolTarget, suite: PoolTarget, threshold: float, most: int) -> bool:
    """Compares and prints; whether a pair reaches the threshold. Raises `NotHere` where a pool's folder isn't here."""
    console = Console()
    if lacks := [*missing(target.pool), *missing(suite.pool)]:
        raise NotHere(lacks, target.experiment.site if target.experiment is not None else None)
    with console.status(f"reading the tasks of {target.label} and {suite.label}"):
        ours, theirs = _tasks(target, console), _tasks(suite, console)
    with ProgressReport(console) as report, report.phase("comparing", texts(ours, theirs)) as phase:
        found = overlap(ours, theirs, threshold, phase.advance)
    console.print(f"likeness of the nearest task, for each of {len(theirs)} in {suite.label}:", highlight=False, soft_wrap=True)
    console.print(_nearest(found))
    console.print()
    close = sorted((pair for pairs in found.nearest.values() for pair in pairs if pair.score >= threshold), key=lambda p: -p.score)
    if close:
        Console(width=max(console.width, WIDTH)).print(_pairs(close[:most], found.pairs))
        if len(close) > most:
            console.print(f"and {len(close) - most} more; --most prints them", highlight=False)
        console.print()
    console.print(
        f"{len({pair.held_out for pair in found.pairs})} of {len(theirs)} tasks of {suite.label} have a task of {target.label} "
        f"that is like them by {threshold:g} or more, in {len(found.pairs)} pairs",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    return bool(found.pairs)


def _tasks(target: PoolTarget, console: Console) -> list[Task]:
    found = candidates(target.pool)
    read = [each.task for each in found if each.task is not None]
    if len(read) < len(found):
        told = f"{len(found) - len(read)} tasks of {target.label} can't be read and are left out; `t1x tasks check` says why"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    return read


def _nearest(found: Overlap) -> Table:
    """How alike the nearest task is, over the held-out tasks."""
    table = Table(pad_edge=False, box=None)
    table.add_column("")
    for field in found.nearest:
        table.add_column(field, justify="right")
    scores = {field: [pair.score for pair in pairs] for field, pairs in found.nearest.items()}
    for name, percent in (("median", 50), ("90 %", 90), ("most", 100)):
        table.add_row(name, *(f"{percentile(values, percent):.2f}" if values else "" for values in scores.values()))
    table.add_row("")
    for step in range(STEPS):
        low, last = step / STEPS, step == STEPS - 1
        counts = [sum(low <= score < low + 1 / STEPS or (last and score >= low) for score in values) for values in scores.values()]
        table.add_row(f"{low:.1f} to {low + 1 / STEPS:.1f}", *(f"{number or ''}" for number in counts))
    return table


def _pairs(close: Sequence[Pair], found: Sequence[Pair]) -> Table:
    """Held-out tasks with the nearest task of each, and how many others of all that were `found` are near it."""
    near = Counter((pair.field, pair.held_out) for pair in found)
    table = Table(pad_edge=False, box=None)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("field", no_wrap=True)
    table.add_column("held-out task", overflow="fold")
    table.add_column("nearest task of the pool", overflow="fold")
    table.add_column("others", justify="right")
    for pair in close:
        others = near[pair.field, pair.held_out] - 1
        table.add_row(f"{pair.score:.2f}", pair.field, Text(pair.held_out), Text(pair.task), f"{others or ''}")
    return table

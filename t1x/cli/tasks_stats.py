"""What `t1x tasks stats` prints."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from t1x.curation.statistics import PERCENT, Statistics, percentile

ENDINGS = (".png", ".pdf", ".svg")
"""Of a figure's name."""
MOST = 30
"""Rows of a table."""
BAR = 30
"""Columns of the longest bar."""


def require_figure(path: Path) -> None:
    """Raises `ValueError` where a figure can't be written to the path, before the work that it shows."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"--figure {path}: a figure's name ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not path.parent.is_dir():
        raise ValueError(f"--figure {path}: there is no folder {path.parent}; make it first")


def statistics_tables(found: Statistics) -> Iterator[RenderableType]:
    """Lines and tables, in the order in which they are read."""
    yield Text(_heading(found))
    yield ""
    yield _spread(found)
    if found.scale is not None:
        yield Text(
            f"\nS = {found.scale}: at least {PERCENT} % of tasks have at most so many assertions (nearest rank). It is what "
            f"TestCountReward.scale is set to where a task at that percentile shall be worth 1.\n"
        )
        yield _shares("assertions", _binned(found.assertions))
    for name, counts in (("family", found.families), ("difficulty", found.difficulties), ("fault", found.findings)):
        if counts:
            yield ""
            yield _shares(name, counts, found.tasks)


def _heading(found: Statistics) -> str:
    parts = [f"{found.tasks} tasks"]
    if found.unreadable:
        parts.append(f"{found.unreadable} that can't be read are left out")
    parts.append(f"{found.checked} of them checked" if found.checked else "none checked; `t1x tasks check` finds out the rest")
    return ", ".join(parts)


def _spread(found: Statistics) -> Table:
    table = Table(pad_edge=False, box=None)
    table.add_column("a task")
    for column in ("least", "10 %", "median", f"{PERCENT} %", "most", "known of"):
        table.add_column(column, justify="right")
    rows: list[tuple[str, Sequence[float], str]] = [
        ("assertions", found.assertions, "{:.0f}"),
        ("words of its instruction", found.words, "{:.0f}"),
        ("share of assertions that hold untouched", found.held, "{:.2f}"),
        *((f"{part}, seconds", values, "{:.3g}") for part, values in found.seconds.items()),
    ]
    for name, values, form in rows:
        if values:
            numbers = (min(values), percentile(values, 10), percentile(values, 50), percentile(values, PERCENT), max(values))
            table.add_row(name, *(form.format(number) for number in numbers), f"{len(values)}")
    return table


def _binned(values: Sequence[int]) -> dict[str, int]:
    """How many values there are of each, or in each of at most `MOST` ranges of equal width."""
    width = -(-(max(values) - min(values) + 1) // MOST)
    first = min(values)
    counts = Counter((value - first) // width for value in values)
    starts = {index: first + index * width for index in range(max(counts) + 1)}
    return {f"{start}" if width == 1 else f"{start}-{start + width - 1}": counts[index] for index, start in starts.items()}


def _shares(name: str, counts: Mapping[str, int], tasks: int | None = None) -> Table:
    """With a bar each. `tasks` is what shares are of, the sum of the counts where None."""
    whole, longest = tasks or sum(counts.values()), max(counts.values())
    table = Table(pad_edge=False, box=None)
    table.add_column(name, max_width=40, overflow="fold")
    table.add_column("tasks", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for label, count in list(counts.items())[:MOST]:
        table.add_row(Text(label), f"{count}", f"{count / whole:.1%}", "█" * round(BAR * count / longest))
    if len(counts) > MOST:
        table.add_row(f"and {len(counts) - MOST} more", "", "", "")
    return table

"""What a pool has, as a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t1x.curation.statistics import PERCENT, Statistics, percentile
from t1x.tracking.figures import COLOURS, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BARS = 20
"""Of a histogram."""
SHARE = "share of assertions that hold untouched"
FAMILIES = 30
"""That are drawn, the most frequent ones."""


def pool_figure(path_png: Path, found: Statistics, title: str = "") -> None:
    """Draws a panel for each measure that has values: histograms of assertions (with S), instruction lengths, the verifier's
    seconds and the share of assertions that hold untouched, and how many tasks have each kind of work."""
    panels: list[tuple[str, Sequence[float]]] = [
        ("assertions of a task", found.assertions),
        ("words of a task's instruction", found.words),
        ("verifier, seconds", found.seconds["verifier"]),
        (SHARE, found.held),
    ]
    drawn = [(label, values) for label, values in panels if values]
    rows = len(drawn) + bool(found.families)
    if not rows:
        raise ValueError("there is nothing to draw: the pool has no task that can be read")
    heights = [2.0] * len(drawn) + [0.6 + 0.2 * min(len(found.families), FAMILIES)] * bool(found.families)
    with styled_figure(path_png, (8.0, 0.8 + sum(heights)), f"{title}: {found.tasks} tasks".removeprefix(": ")) as figure:
        axes = list(figure.subplots(rows, 1, squeeze=False, height_ratios=heights)[:, 0])
        for panel, (label, values) in zip(axes, drawn, strict=False):
            _histogram(panel, label, values)
        if found.scale is not None:
            axes[0].axvline(found.scale, linestyle=":", color="0.3", linewidth=1.5)
            axes[0].set_title(f"dotted: S = {found.scale}, the {PERCENT}th percentile", fontsize=9)
        if found.families:
            _bars(axes[-1], found.families)


def _histogram(panel: "Axes", label: str, values: Sequence[float]) -> None:
    low, high = min(values), max(values)
    if label == SHARE:
        edges = [step / BARS for step in range(BARS + 1)]
    elif all(isinstance(value, int) for value in values) and high - low <= 2 * BARS:
        edges = [low - 0.5 + step for step in range(int(high - low) + 2)]
    else:
        cut = percentile(values, 99)
        width = (cut - low) / BARS or 1.0
        edges = [low + step * width for step in range(BARS + 1)]
        label += f" ({sum(value > edges[-1] for value in values)} beyond {edges[-1]:.3g} not shown)" if high > edges[-1] else ""
    panel.hist(values, bins=edges, color=COLOURS[0], edgecolor="white", linewidth=0.5)
    panel.set_xlabel(label)
    panel.set_ylabel("tasks")
    _whole(panel.yaxis)
    if all(isinstance(value, int) for value in values):
        _whole(panel.xaxis)
    panel.grid(visible=False, axis="x")


def _bars(panel: "Axes", counts: Mapping[str, int]) -> None:
    shown = list(counts.items())[:FAMILIES]
    panel.barh([name for name, _ in shown], [count for _, count in shown], color=COLOURS[1])
    panel.invert_yaxis()
    more = f" (and {len(counts) - FAMILIES} more kinds)" if len(counts) > FAMILIES else ""
    _whole(panel.xaxis)
    panel.set_xlabel(f"tasks with this kind of work{more}")
    panel.grid(visible=False, axis="y")


def _whole(axis: "Axis") -> None:
    """Ticks at whole numbers, for what is counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))

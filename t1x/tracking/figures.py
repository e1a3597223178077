"""Figures of a run, drawn without a display. A missing value (None) is a gap, and averages leave it out."""

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from t1x.trajectory.storage_folder import UNTRAINED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, told apart with any colour vision."""
MARKERS = ("o", "s", "D", "^", "v", "P")
RATES_FROM, RATES_TO = -0.02, 0.1
"""Where an axis of shares begins, so that a 0 is seen, and what it reaches at least."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation: the mean of a score and the standard error of that mean, both in the score's unit."""

    step: int | None
    """None for a policy that isn't on the curve (an untrained one): drawn as a level across it."""
    mean: float
    stderr: float


def moving_average(values: Sequence[float | None], window: int) -> list[float]:
    """[n]: the mean of the last `window` values up to each one, fewer at the start; NaN where all of them are missing."""
    if window < 1:
        raise ValueError(f"a moving average needs a window of at least 1, not {window}")
    averages = []
    for end in range(1, len(values) + 1):
        known = [value for value in values[max(0, end - window) : end] if value is not None]
        averages.append(math.fsum(known) / len(known) if known else math.nan)
    return averages


def learning_curve(
    path_png: Path,
    steps: Sequence[int],
    series: Mapping[str, Sequence[float | None]],
    window: int,
    *,
    evaluations: Mapping[str, Sequence[Evaluation]] | None = None,
    axes: Mapping[str, str] | None = None,
    rates: Collection[str] = (),
    undefined: Mapping[str, str] | None = None,
    title: str = "",
) -> None:
    """Draws one panel for each axis label, over `steps` (training steps): each of `series` ([len(steps)]) as faint points under a
    bold moving average, each of `evaluations` as points with error bars; lines only through more than two points. `axes` gives the
    label (with its unit) of the axis that a series or an evaluation is drawn on; its own name is the default. Of these labels,
    `rates` are those of shares (0 to 1); `undefined` is what a panel says that has no value at all. Raises `ValueError` for a
    series of another length."""
    evaluations, axes, undefined = evaluations or {}, axes or {}, undefined or {}
    label_of = {name: axes.get(name, name) for name in [*evaluations, *series]}
    labels = list(dict.fromkeys(label_of.values()))
    with _panels(path_png, len(labels), title, _step_label(window)) as panels:
        for panel, label in zip(panels, labels, strict=True):
            looks = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
            names = [name for name in label_of if label_of[name] == label]
            for name, (colour, marker) in zip(names, looks, strict=False):
                if name in series:
                    _draw_series(panel, name, steps, series[name], window, colour)
                if name in evaluations:
                    _draw_evaluations(panel, name, evaluations[name], colour, marker)
            panel.set_ylabel(label)
            drawn = [value for name in names for value in (*series.get(name, ()), *evaluations.get(name, ()))]
            if all(value is None for value in drawn):
                _say_undefined(panel, undefined.get(label, "no values"))
            elif label in rates:
                panel.set_ylim(RATES_FROM, max(RATES_TO, panel.get_ylim()[1]))
            levels = any(isinstance(value, Evaluation) and value.step is None for value in drawn)
            if levels:
                panel.plot([], [], ":", color="0.3", linewidth=1.5, label=UNTRAINED)
            if levels or len(names) > 1:
                _add_legend(panel)


def study_curve(
    path_png: Path,
    runs: Mapping[str, tuple[Sequence[int], Sequence[float | None]]],
    window: int,
    *,
    label: str = "critic's explained variance",
    title: str = "",
) -> None:
    """One metric of several runs on one panel: run name to its (steps, values), e.g. a warm and a cold critic."""
    with _panels(path_png, 1, title, _step_label(window)) as (panel,):
        for (name, (steps, values)), colour in zip(runs.items(), cycle(COLOURS), strict=False):
            _draw_series(panel, name, steps, values, window, colour)
        panel.axhline(0, color="0.3", linewidth=0.8, zorder=1)
        panel.set_ylabel(label)
        _add_legend(panel)


@contextmanager
def styled_figure(path_png: Path, size: tuple[float, float], title: str) -> Iterator["Figure"]:
    """A figure of `size` inches (width, height) in the looks that all have; written to the file when the block ends well."""
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "grid.linewidth": 0.6,
            "axes.titlelocation": "left",
            "legend.frameon": False,
        }
    ):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        path_png.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path_png, dpi=150)


@contextmanager
def _panels(path_png: Path, count: int, title: str, x_label: str) -> Iterator[list["Axes"]]:
    """Panels one above the other that share the x axis; written to the file when the block ends well."""
    from matplotlib.ticker import MaxNLocator

    with styled_figure(path_png, (8.0, 1.0 + 2.8 * count), title) as figure:
        panels = list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])
        yield panels
        figure.align_ylabels(panels)
        panels[-1].set_xlabel(x_label)
        panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))


def _step_label(window: int) -> str:
    """The x axis' label, with what the looks of a series' points and line mean."""
    return "training step" + (f" (dots: one step; lines: mean of the last {window})" if window > 1 else "")


def _draw_series(panel: "Axes", name: str, steps: Sequence[int], values: Sequence[float | None], window: int, colour: str) -> None:
    if len(values) != len(steps):
        raise ValueError(f"{name} has {len(values)} values for {len(steps)} steps")
    raw = [math.nan if value is None else value for value in values]
    if sum(value is not None for value in values) <= 2:
        panel.plot(steps, raw, ".", color=colour, markersize=9, label=name)
        return
    panel.plot(steps, raw, ".", color=colour, alpha=0.5, markersize=5)
    average = moving_average(values, window)
    panel.plot(steps, average, "-", color=colour, linewidth=2, label=name)


def _say_undefined(panel: "Axes", text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color="0.3")
    panel.set_yticks([])


def _add_legend(panel: "Axes") -> None:
    """Above the panel, where it hides no point."""
    panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2, handlelength=1.6, columnspacing=1.4)


def _draw_evaluations(panel: "Axes", name: str, evaluations: Sequence[Evaluation], colour: str, marker: str) -> None:
    points = [each for each in evaluations if each.step is not None]
    means, errors = [each.mean for each in points], [each.stderr for each in points]
    if points:
        where = [each.step for each in evaluations if each.step is not None]
        line = "--" if len(points) > 2 else ""
        panel.errorbar(where, means, errors, fmt=f"{marker}{line}", color=colour, linewidth=1, markersize=6, capsize=3, label=name)
    for level in evaluations:
        if level.step is None:
            panel.axhspan(level.mean - level.stderr, level.mean + level.stderr, color=colour, alpha=0.12, linewidth=0)
            panel.axhline(level.mean, linestyle=":", color=colour, linewidth=1.5, label=None if points else name)

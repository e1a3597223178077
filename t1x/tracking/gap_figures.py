"""Figures of the gap between engine and trainer."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from t1x.tracking.figures import COLOURS, MARKERS, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 48
"""Of a histogram."""
LEAST = 1e-9
"""Smaller gaps, and those of 0, are drawn as this."""
DODGE = 1.08
"""By what factor the points of two curves are apart."""


def gap_histograms(path_png: Path, panels: Mapping[str, Mapping[str, npt.NDArray[np.floating]]], title: str = "") -> None:
    """A panel for each engine with a line for each cell: how |o - q| [M] is spread over its loss tokens, both axes logarithmic."""
    found = np.concatenate([values for cells in panels.values() for values in cells.values()])
    low = max(LEAST, found[found > 0].min(initial=found.max()))
    edges = np.geomspace(low, max(10 * low, found.max()) * 1.01, BINS + 1)
    with styled_figure(path_png, (8.0, 1.0 + 2.8 * len(panels)), title) as figure:
        axes: Sequence[Axes] = list(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
        for panel, (engine, cells) in zip(axes, panels.items(), strict=True):
            for (name, values), colour, style in zip(cells.items(), cycle(COLOURS), cycle(("-", "--", "-.", ":")), strict=False):
                counts, _ = np.histogram(values.clip(edges[0], edges[-1]), edges)
                panel.stairs(counts / max(1, len(values)), edges, color=colour, linestyle=style, linewidth=1.5, label=name)
                panel.axvline(float(values.mean()), color=colour, linestyle=style, linewidth=0.8, alpha=0.6)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylabel(f"share of loss tokens,\n{engine} engine")
            panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=8)
        axes[-1].set_xlabel("|o - q|, nats (thin vertical lines: means)")


def flip_curves(path_png: Path, curves: Mapping[str, Sequence[tuple[float, float, float | None]]], title: str = "") -> None:
    """The share of (position, layer) pairs that flip against the top-k margin: for each engine (median margin, share, its standard
    error if there is one) of each bin, margins rising. Engines are drawn beside each other, so that none hides another."""
    with styled_figure(path_png, (8.0, 3.8), title) as figure:
        panel = figure.subplots()
        for index, ((engine, bins), colour, marker) in enumerate(zip(curves.items(), cycle(COLOURS), cycle(MARKERS), strict=False)):
            at, shares, errors = np.array(bins, np.float64).T
            at = at * DODGE ** (index - (len(curves) - 1) / 2)
            panel.errorbar(at, shares, errors, color=colour, marker=marker, linewidth=1.2, capsize=3, label=f"{engine} engine")
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xlabel("top-k margin γ (median of each bin; bars: ± standard error)")
        panel.set_ylabel("share of pairs that flip")
        panel.legend(loc="best")

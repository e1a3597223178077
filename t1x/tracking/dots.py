"""Settings compared: a dot with its standard error for each, one below the other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from t1x.tracking.figures import COLOURS, MARKERS, styled_figure

ROW = 0.3
"""Inches."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One setting. Those of one group stand together."""

    group: str
    label: str
    """Within the group; may be empty."""
    mean: float | None
    """None where it is missing."""
    stderr: float
    """NaN where it isn't known: drawn without a bar."""


def dots(path_png: Path, panels: Mapping[str, Sequence[Dot]], *, group: str, title: str = "") -> None:
    """Draws one panel for each measure (its name is the panel's x axis), with the same dots in the same order in each; `group` says
    what the groups are. A colour and a marker tell the groups apart."""
    names = list(dict.fromkeys(dot.group for row in panels.values() for dot in row))
    looks = dict(zip(names, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    rows = max(len(row) for row in panels.values()) + len(names) - 1
    with styled_figure(path_png, (8.0, len(panels) * (0.9 + ROW * rows) + 0.5), title) as figure:
        for panel, (measure, row) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels.items(), strict=True):
            ticks: list[tuple[float, str]] = []
            for dot in sorted(row, key=lambda dot: names.index(dot.group)):
                y = float(len(ticks) + names.index(dot.group))  # a free line between groups
                ticks.append((y, f"{group} {dot.group}" + (f", {dot.label}" if dot.label else "")))
                colour, marker = looks[dot.group]
                if dot.mean is None:
                    panel.text(0.01, y, "missing", transform=panel.get_yaxis_transform(), va="center", color="0.4", fontsize=9)
                else:
                    bar = None if math.isnan(dot.stderr) else dot.stderr
                    panel.errorbar(dot.mean, y, xerr=bar, fmt=marker, color=colour, markersize=7, capsize=3, linewidth=1.5)
            panel.set_yticks([y for y, _ in ticks], [label for _, label in ticks])
            panel.set_ylim(ticks[-1][0] + 0.6, -0.6)
            panel.set_xlabel(measure)
            panel.grid(visible=False, axis="y")

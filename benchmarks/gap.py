"""What TITO and R3 take off the log-probability gap of a bfloat16 sampler (the report's Figure 6 in miniature).

python benchmarks/gap.py [CHECKPOINT …] [--trials 300] [--figure docs/gap.png] [--set GIN …]

Each checkpoint (as `t1x gap` takes it) is a policy of its own; the newest one in runs/ without any. Its trials are new ones, in
real sandboxes, sampled by the bfloat16 engine; all cells of a policy are of the same sampled ids.
"""

import argparse
import sys
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

import numpy as np
from rich.console import Console

from t1x.campaign.gap import Cell
from t1x.campaign.gap_report import GapReport, measure_gap
from t1x.campaign.gap_source import gap_source
from t1x.cli.gap_tables import gap_tables
from t1x.cli.options import WIDTH
from t1x.model.router import RouterMode
from t1x.tracking.figures import COLOURS, MARKERS, styled_figure

SAMPLER = "bfloat16"
ENGINE = ["Campaign.engine = @EmbeddedEngine()", f"EmbeddedEngine.dtype = '{SAMPLER}'"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="*", help="a run, a checkpoint's folder or a policy's")
    parser.add_argument("--trials", type=int, default=300, help="new trials of each policy")
    parser.add_argument("--figure", type=Path, help="where to draw the cells")
    parser.add_argument("--set", action="append", default=[], metavar="GIN", help="wins over the run's settings; repeatable")
    arguments = parser.parse_args()
    console = Console(width=max(WIDTH, Console().width))
    series = {}
    for checkpoint in arguments.checkpoints or [_newest()]:
        source = gap_source(checkpoint, set=[*ENGINE, *arguments.set], sandboxes=True)
        report = measure_gap(source, console, sample=arguments.trials)
        console.print(f"\n== {source.weights.name}, seed {source.campaign.seed}", highlight=False)
        for each in gap_tables(report):
            console.print(each, highlight=False, soft_wrap=True)
        entropy = report.measured.entropy.mean
        series[f"{source.weights.name}, seed {source.campaign.seed} (entropy {entropy:.2f} nats)"] = _cells(report)
    if arguments.figure:
        title = f"A {SAMPLER} sampler against the float32 trainer, {arguments.trials} trials of each policy"
        draw(arguments.figure, series, title)
        console.print(f"\n{arguments.figure}", highlight=False)


def _cells(report: GapReport) -> dict[str, tuple[float, float | None]]:
    names = {
        "neither": (RouterMode.FREE, report.text),
        "R3": (RouterMode.REPLAY_NO_GRAD, report.text),
        "TITO": (RouterMode.FREE, report.tokens),
        "TITO + R3": (RouterMode.REPLAY_NO_GRAD, report.tokens),
    }
    return {name: report.measured.cells[Cell(SAMPLER, mode, stitcher)].estimate for name, (mode, stitcher) in names.items()}


def draw(path_png: Path, series: Mapping[str, Mapping[str, tuple[float, float | None]]], title: str) -> None:
    """The mean gap of each cell with its 95 % interval, on a logarithmic axis (an interval that reaches 0 is cut at a tenth of its
    mean): for each of `series` (a policy) cell to (mean, standard error)."""
    with styled_figure(path_png, (8.0, 4.0), title) as figure:
        panel = figure.subplots()
        names = list(next(iter(series.values())))
        for index, ((label, cells), colour, marker) in enumerate(zip(series.items(), cycle(COLOURS), cycle(MARKERS), strict=False)):
            at = np.arange(len(names)) + 0.12 * (index - (len(series) - 1) / 2)
            means, errors = np.array([cells[name] for name in names], np.float64).T
            bars = np.minimum(1.96 * errors, 0.9 * means), 1.96 * errors
            panel.errorbar(at, means, bars, fmt=marker, color=colour, markersize=7, capsize=4, linewidth=1.5, label=label)
        panel.set_xticks(range(len(names)), names)
        panel.set_yscale("log")
        panel.set_ylabel("mean |o - q|, nats a token (bars: 95 %)")
        panel.grid(visible=False, axis="x")
        panel.legend(loc="best")


def _newest() -> str:
    found = sorted(Path("runs").glob("*/checkpoints/step-*/policy"), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit("no trained policy in runs/; run `make quickstart` first or name a checkpoint")
    return str(found[-1])


if __name__ == "__main__":
    main()

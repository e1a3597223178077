"""What a campaign leaves for a reader: a summary table, a learning curve, transcripts."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Group
from rich.table import Table

from t1x.campaign.outcome import Outcome, Score, policy_name
from t1x.campaign.wording import with_error
from t1x.tracking.figures import Evaluation, learning_curve
from t1x.tracking.transcripts import write_transcripts

WINDOW = 5
"""Steps of the learning curve's moving average."""
RATE = "resolved rate (share of tasks)"
CREDIT = "partial credit (share of a task's assertions)"
AXES = {"resolved_rate": RATE, "partial_credit": CREDIT}
MEASURES = {"resolved_rate": "resolved rate", "partial_credit": "partial credit"}
"""How the table calls each measure."""
PASS = "pass_at_"
EXPLAINED = "critic's explained variance"
UNDEFINED = {EXPLAINED: "not defined: returns didn't vary"}
"""Axis to why it may have no value."""
CURVES = {
    "rollout/reward_mean": ("training reward", "reward (mean of a batch)"),
    "rollout/resolved_rate": ("training batches", RATE),
    "critic/explained_variance": ("critic", EXPLAINED),
}
"""Metric to its name in the figure and its axis. What a campaign has nothing of (a critic) is left out."""


def write_report(folder: Path, outcome: Outcome, title: str) -> list[Path]:
    """Writes `scores.json`, `learning_curve.png` (after a step) and `transcripts.md` (of the last evaluation or batch) into the
    folder; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = folder / "scores.json"
    rows = [{"policy": score.policy, **asdict(score)} for score in outcome.scores]
    scores.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    written = [scores]
    if outcome.transcripts:
        written.append(folder / "transcripts.md")
        write_transcripts(written[-1], outcome.transcripts, outcome.transcripts_of)
    if outcome.steps:
        written.append(folder / "learning_curve.png")
        _draw(written[-1], outcome, title)
    return written


def summary(outcome: Outcome) -> Group:
    """Each suite's measure, and pass@k where a task has several attempts, before, after the start, and at the last step: final
    state alone, mean ± standard error over tasks."""
    measures = " or ".join(dict.fromkeys(MEASURES[score.measure] for score in outcome.scores)).capitalize()
    table = Table(pad_edge=False)
    table.add_column("suite")
    table.add_column("mode")
    table.add_column("tasks", justify="right")
    ends = (None, 0, max(outcome.steps, default=0))
    steps = [step for step in dict.fromkeys(score.step for score in outcome.scores) if step in ends]
    for step in steps:
        table.add_column(policy_name(step), justify="right", no_wrap=True)
    by_row: dict[tuple[str, str], dict[int | None, str]] = {}
    sizes: dict[tuple[str, str], str] = {}
    for score in outcome.scores:
        for mode, value, error in _values(score):
            by_row.setdefault((score.suite, mode), {})[score.step] = with_error(value, error)
            sizes[score.suite, mode] = str(int(score.metrics["tasks"]))
    for row, cells in by_row.items():
        table.add_row(*row, sizes[row], *(cells.get(step, "") for step in steps))
    return Group(f"{measures}, mean ± standard error over tasks", table)  # a table's own title is filled up with blanks


def _values(score: Score) -> Iterator[tuple[str, float, float]]:
    """(mode, value, standard error) of its measure, which is told where it isn't the usual one, and of pass@k for as many attempts
    as a task has."""
    yield score.label + (f", {MEASURES[score.measure]}" if score.measure != "resolved_rate" else ""), score.value, score.stderr
    most = max((int(name.removeprefix(PASS)) for name in score.metrics if re.fullmatch(rf"{PASS}\d+", name)), default=1)
    if most > 1:
        name = f"{PASS}{most}"
        yield f"{score.label}, pass@{most}", score.metrics[name], score.metrics.get(f"{name}_se", math.nan)


def _draw(path: Path, outcome: Outcome, title: str) -> None:
    trained = {name.partition("/")[0] for metrics in outcome.steps.values() for name in metrics}
    curves = {metric: curve for metric, curve in CURVES.items() if metric.partition("/")[0] in trained}
    series = {name: [metrics.get(metric) for metrics in outcome.steps.values()] for metric, (name, _) in curves.items()}
    axes = dict(curves.values())
    evaluations: dict[str, list[Evaluation]] = {}
    for score in outcome.scores:
        name = f"{score.suite}, {score.label}"
        evaluations.setdefault(name, []).append(Evaluation(score.step, score.value, score.stderr))
        axes[name] = AXES[score.measure]
    learning_curve(
        path,
        list(outcome.steps),
        series,
        WINDOW,
        evaluations=evaluations,
        axes=axes,
        rates=[RATE, CREDIT],
        undefined=UNDEFINED,
        title=title,
    )

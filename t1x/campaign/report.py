"""What a campaign leaves for a reader: a summary table, a learning curve, transcripts."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from t1x.campaign.loop import Outcome
from t1x.tracking.figures import Evaluation, learning_curve
from t1x.tracking.transcripts import write_transcripts

WINDOW = 5
"""Steps of the learning curve's moving average."""
RATE = "resolved rate (share of tasks)"
CURVES = {
    "rollout/reward_mean": ("training reward", "reward (mean of a batch)"),
    "rollout/resolved_rate": ("training batches", RATE),
    "critic/explained_variance": ("critic", "explained variance (of 1)"),
}
"""Metric to its name in the figure and its axis."""


def write_report(folder: Path, outcome: Outcome, title: str) -> list[Path]:
    """Writes `scores.json`, `learning_curve.png` (after a step) and `transcripts.md` (of the last evaluation or batch) into the
    folder; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = folder / "scores.json"
    scores.write_text(json.dumps([asdict(score) for score in outcome.scores], indent=1) + "\n", encoding="utf-8")
    written = [scores]
    if outcome.transcripts:
        written.append(folder / "transcripts.md")
        write_transcripts(written[-1], outcome.transcripts)
    if outcome.steps:
        written.append(folder / "learning_curve.png")
        _draw(written[-1], outcome, title)
    return written


def summary(outcome: Outcome) -> Table:
    """Resolved rates before, after the start, and at the last step: final state alone, mean ± standard error over tasks."""
    table = Table(title="Resolved rate (final state alone), mean ± standard error over tasks", title_justify="left", pad_edge=False)
    table.add_column("suite")
    table.add_column("mode")
    table.add_column("tasks", justify="right")
    policies = [policy for policy in dict.fromkeys(score.policy for score in outcome.scores) if policy in _ends(outcome)]
    for policy in policies:
        table.add_column(policy, justify="right", no_wrap=True)
    by_row: dict[tuple[str, str], dict[str, str]] = {}
    sizes: dict[tuple[str, str], str] = {}
    for score in outcome.scores:
        row = (score.suite, score.mode)
        by_row.setdefault(row, {})[score.policy] = f"{score.resolved_rate:.3f} ± {score.stderr:.3f}"
        sizes[row] = str(int(score.metrics["valid"]))
    for (suite, mode), cells in by_row.items():
        label = "greedy" if mode == "greedy" else "T = 1"
        table.add_row(suite, label, sizes[suite, mode], *(cells.get(policy, "") for policy in policies))
    return table


def _ends(outcome: Outcome) -> set[str]:
    last = f"step {outcome.steps[-1]}" if outcome.steps else "start"
    return {"untrained", "start", last}


def _draw(path: Path, outcome: Outcome, title: str) -> None:
    series, axes = {}, {}
    for metric, (name, axis) in CURVES.items():
        if any(metric in metrics for metrics in outcome.metrics):
            series[name] = [metrics.get(metric) for metrics in outcome.metrics]
            axes[name] = axis
    evaluations: dict[str, list[Evaluation]] = {}
    for score in outcome.scores:
        if score.policy != "untrained":
            step = 0 if score.policy == "start" else int(score.policy.removeprefix("step "))
            name = f"{score.suite}, {'greedy' if score.mode == 'greedy' else 'T = 1'}"
            evaluations.setdefault(name, []).append(Evaluation(step, score.resolved_rate, score.stderr))
            axes[name] = RATE
    learning_curve(path, outcome.steps, series, WINDOW, evaluations=evaluations, axes=axes, title=title)

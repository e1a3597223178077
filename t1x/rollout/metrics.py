"""What a rollout or an evaluation comes to, as numbers. Pure functions of trials; nothing undefined is reported."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from t1x.grading.report import VerifierReport
from t1x.harness.records import EndedBy
from t1x.rollout.records import RolloutBatch, Trial


def rollout_metrics(batch: RolloutBatch) -> dict[str, float]:
    """Means over the admitted trials (a mean over no trial is left out), counts over the others.

    `rollout/assertion_share` is the mean of P/T, `rollout/ended_by/*` are shares of the admitted trials, `rollout/tokens` the
    trajectories' tokens and `rollout/loss_tokens` the sampled ones among them; `rollout/launched` = admitted + cancelled + invalid
    + late (valid but left out: the batch was full, or another trial of its group failed). `time/trial_*` are mean seconds by
    phase."""
    metrics: dict[str, float] = {}
    admitted = batch.admitted
    if admitted:
        reports = [trial.report for trial in admitted if trial.report]
        means: dict[str, list[float]] = {
            "reward_mean": [trial.reward for trial in admitted if trial.reward is not None],
            "turns_mean": [len(trial.turns) for trial in admitted],
            "resolved_rate": [report.resolved for report in reports],
            "assertion_share": [
                trial.report.passed / trial.report.total for trial in admitted if trial.report and trial.report.total
            ],
        }
        metrics |= {f"rollout/{name}": float(np.mean(values)) for name, values in means.items() if values}
        ended = Counter(trial.ended_by for trial in admitted)
        metrics |= {f"rollout/ended_by/{reason}": ended[reason] / len(admitted) for reason in EndedBy if reason.counts}
    trajectories = [trajectory for trial in admitted for trajectory in trial.trajectories]
    cancelled = sum(trial.ended_by is EndedBy.CANCELLED for trial in batch.others)
    late = sum(trial.ended_by.counts for trial in batch.others)
    metrics |= {
        "rollout/tokens": float(sum(len(trajectory.token_ids) for trajectory in trajectories)),
        "rollout/loss_tokens": float(sum(int(trajectory.loss_mask.sum()) for trajectory in trajectories)),
        "rollout/launched": float(len(admitted) + len(batch.others)),
        "rollout/admitted": float(len(admitted)),
        "rollout/cancelled": float(cancelled),
        "rollout/late": float(late),
        "rollout/invalid": float(len(batch.others) - cancelled - late),
    }
    return metrics | _phases(admitted)


def _phases(trials: Iterable[Trial]) -> dict[str, float]:
    seconds = defaultdict(list)
    for trial in trials:
        for phase, value in trial.timings.items():
            seconds[f"time/trial_{phase}"].append(value)
    return {phase: float(np.mean(values)) for phase, values in seconds.items()}


def evaluation_metrics(trials: Sequence[Trial]) -> dict[str, float]:
    """Shares of tasks resolved and of assertions that hold, with standard errors: `resolved_rate`, `resolved_rate_se`,
    `partial_credit` (mean P/T), `partial_credit_se`, the same under `family/<name>/` (a task counts in each of its families) and
    `difficulty/<name>/`; mean turns; how many trials were valid and invalid (those are in no rate), how many tasks those are of.

    Attempts at a task are averaged first, and a standard error is that of a mean of task means (attempts at one task aren't
    independent); left out for a single task."""
    valid = [trial for trial in trials if trial.ended_by.counts and trial.report is not None]
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in valid:
        groups[""].append(trial)
        groups[f"difficulty/{trial.task.difficulty}/"].append(trial)
        for family in sorted(set(trial.task.families)):
            groups[f"family/{family}/"].append(trial)
    metrics = {"valid": float(len(valid)), "invalid": float(len(trials) - len(valid))}
    if valid:
        metrics["tasks"] = float(len({trial.task.name for trial in valid}))
        metrics["turns_mean"] = float(np.mean([len(trial.turns) for trial in valid]))
    for prefix, group in groups.items():
        metrics |= {f"{prefix}{name}": value for name, value in _scores(group).items()}
    return metrics


def _scores(trials: Sequence[Trial]) -> dict[str, float]:
    attempts: dict[str, list[VerifierReport]] = defaultdict(list)
    for trial in trials:
        assert trial.report is not None
        attempts[trial.task.name].append(trial.report)
    resolved = [float(np.mean([report.resolved for report in reports])) for reports in attempts.values()]
    credit = [float(np.mean([report.passed / max(report.total, 1) for report in reports])) for reports in attempts.values()]
    return _mean("resolved_rate", resolved) | _mean("partial_credit", credit)


def _mean(name: str, values: Sequence[float]) -> dict[str, float]:
    mean = {name: float(np.mean(values))}
    return mean | ({f"{name}_se": float(np.std(values, ddof=1) / np.sqrt(len(values)))} if len(values) > 1 else {})

"""What an evaluation comes to, as numbers. Pure functions of trials; nothing undefined is reported."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from t1x.grading.report import VerifierReport
from t1x.rollout.records import Trial
from t1x.trajectory.ending import EndedBy


def evaluation_metrics(trials: Sequence[Trial]) -> dict[str, float]:
    """Scores over tasks with standard errors (`…_se`), of the valid trials: `resolved_rate`, `partial_credit` (mean P/T; b where
    there is no usable record), `reward_mean` (in the reward's unit) and, where a task has several attempts, `pass_at_<k>` (see
    `pass_at`) for each k up to the most that one has; the same under `family/<name>/` (a task counts in each of its families) and
    `difficulty/<name>/`.

    Of trials: `turns_mean`, `turns_resolved` and `turns_failed` by outcome, `repeated_turns` (share of turns whose completion is,
    id for id, that of an earlier turn of its trial), `ended_by/*` (shares; `ended_by/context` are context overruns). Counts:
    `valid`, `invalid` (those are in nothing else), `tasks` of the valid ones.

    Attempts at a task are averaged first, and a standard error is that of a mean of task means (attempts at one task aren't
    independent); left out for a single task."""
    valid = [trial for trial in trials if trial.ended_by.counts and trial.report is not None]
    metrics = {"valid": float(len(valid)), "invalid": float(len(trials) - len(valid))}
    if not valid:
        return metrics
    groups: dict[str, dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial in valid:
        for group in (
            "",
            f"difficulty/{trial.task.difficulty}/",
            *(f"family/{name}/" for name in sorted(set(trial.task.families))),
        ):
            groups[group][trial.task.name].append(trial)
    metrics["tasks"] = float(len(groups[""]))
    for prefix, attempts in groups.items():
        metrics |= {f"{prefix}{name}": value for name, value in _scores(list(attempts.values())).items()}
    return metrics | _behaviour(valid)


def pass_at(k: int, attempts: int, resolved: int) -> float:
    """Unbiased estimate of the chance that at least one of `k` attempts resolves a task, from n ≥ k attempts of which c did:
    1 − C(n − c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, Eq. 1). For k = 1 it is c / n."""
    return 1 - math.comb(attempts - resolved, k) / math.comb(attempts, k)


def _scores(tasks: Sequence[Sequence[Trial]]) -> dict[str, float]:
    """Of the attempts at each task."""
    reports = [[trial.report for trial in attempts if trial.report] for attempts in tasks]
    rewards = [[trial.reward for trial in attempts if trial.reward is not None] for attempts in tasks]
    scores = (
        _mean("resolved_rate", [float(np.mean([report.resolved for report in each])) for each in reports])
        | _mean("partial_credit", [float(np.mean([_credit(report) for report in each])) for each in reports])
        | _mean("reward_mean", [float(np.mean(each)) for each in rewards if each])
    )
    outcomes = [(len(each), sum(report.resolved for report in each)) for each in reports]
    most = max(attempts for attempts, _ in outcomes)
    for k in range(1, most + 1) if most > 1 else ():
        scores |= _mean(f"pass_at_{k}", [pass_at(k, attempts, resolved) for attempts, resolved in outcomes if attempts >= k])
    return scores


def _credit(report: VerifierReport) -> float:
    return report.passed / report.total if report.total else float(report.resolved)


def _mean(name: str, values: Sequence[float]) -> dict[str, float]:
    mean = {name: float(np.mean(values))} if values else {}
    return mean | ({f"{name}_se": float(np.std(values, ddof=1) / np.sqrt(len(values)))} if len(values) > 1 else {})


def _behaviour(trials: Sequence[Trial]) -> dict[str, float]:
    turns: dict[str, list[int]] = {"turns_mean": [len(trial.turns) for trial in trials]}
    for outcome, resolved in (("turns_resolved", True), ("turns_failed", False)):
        turns[outcome] = [len(trial.turns) for trial in trials if trial.report and trial.report.resolved is resolved]
    metrics = {name: float(np.mean(values)) for name, values in turns.items() if values}
    if taken := sum(turns["turns_mean"]):
        different = sum(len({turn.completion.ids.tobytes() for turn in trial.turns}) for trial in trials)
        metrics["repeated_turns"] = (taken - different) / taken
    ended = Counter(trial.ended_by for trial in trials)
    return metrics | {f"ended_by/{reason}": ended[reason] / len(trials) for reason in EndedBy if reason.counts}

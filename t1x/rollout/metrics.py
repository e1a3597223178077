"""What a rollout comes to, as numbers. Pure functions of trials; nothing undefined is reported."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from t1x.rollout.payment import payment
from t1x.rollout.records import RolloutBatch, Trial
from t1x.rollout.retention import retention
from t1x.trajectory.ending import EndedBy


def rollout_metrics(batch: RolloutBatch) -> dict[str, float]:
    """Means over the admitted trials (a mean over no trial is left out), counts over the others.

    `rollout/assertion_share` is the mean of P/T, `rollout/ended_by/*` are shares of the admitted trials, `rollout/tokens` the
    trajectories' tokens and `rollout/loss_tokens` the sampled ones among them; `rollout/launched` = admitted + cancelled + invalid
    + late (valid but left out: the batch was full, or another trial of its group failed). `rollout/invalid/*` count the invalid
    ones by what ended them. `rollout/retention/*` as in `retention`; what was paid for as in `payment`.
    `time/trial_*` are mean seconds by phase."""
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
    broken = Counter(trial.ended_by for trial in batch.others)
    metrics |= {f"rollout/invalid/{reason}": float(broken[reason]) for reason in EndedBy if reason.invalid}
    metrics |= {f"rollout/retention/{name}": share for name, share in retention(batch).items()}
    metrics |= {f"rollout/{name}": value for name, value in payment(batch).items()}
    return metrics | _phases(admitted)


def _phases(trials: Iterable[Trial]) -> dict[str, float]:
    seconds = defaultdict(list)
    for trial in trials:
        for phase, value in trial.timings.items():
            seconds[f"time/trial_{phase}"].append(value)
    return {phase: float(np.mean(values)) for phase, values in seconds.items()}

"""The log-probability gap between sampler and trainer, on the same trajectories with and without routing replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from t1x.model.router import RouterMode
from t1x.rollout.rollout import RunTrial, rollout
from t1x.rollout.scheduler import WaitAll
from t1x.tasks.task import Task
from t1x.training.batch import Batch
from t1x.training.trainer import TrainerWorker
from t1x.trajectory.audit import Audit, audit


@dataclass(frozen=True, slots=True)
class Gap:
    """|o - q| over the loss tokens of some trajectories (Eq. 24b), under one router mode."""

    mean: float
    """Σ|o - q| / M."""
    stderr: float
    """Standard error of that ratio over trajectories (delta method)."""
    loss_tokens: int
    own_turn_violations: int
    """Of the auditor; must be 0."""


async def measure_gap(
    trials: Mapping[str, Task], run: RunTrial, trainer: TrainerWorker, modes: Sequence[RouterMode], concurrency: int
) -> list[Gap]:
    """Runs the trials (id to task) by `run` and measures the gap under each mode, on the same trajectories."""
    rolled = await rollout(trials, batch=len(trials), scheduler=WaitAll(), run=run, concurrency=concurrency)
    batch = Batch.of(rolled.admitted, seed=0)
    violations = sum((audit(trial.turns, trial.trajectories) for trial in rolled.admitted), Audit()).own_turn_violations
    gaps = []
    for mode in modes:
        distance = np.abs(trainer.log_probs(batch, mode) - batch.sampler_logprobs)
        mean, stderr = ratio(np.add.reduceat(distance, batch.offsets), batch.counts)
        gaps.append(Gap(mean, stderr, batch.loss_tokens, violations))
    return gaps


def ratio(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Σ sums / Σ counts and its standard error, trajectories being independent."""
    mean = float(sums.sum() / counts.sum())
    residual = sums - mean * counts
    n = len(sums)
    return mean, float(np.sqrt((residual**2).sum() * n / max(1, n - 1)) / counts.sum())

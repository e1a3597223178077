"""Learning by maximum likelihood: of demonstrations, or of the policy's own successes. Every advantage is 1."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from t1x.config import Smoke
from t1x.rollout.records import Trial
from t1x.tasks.demonstrations import Demonstrations
from t1x.training.algorithm import Algorithm, PolicyUpdate, TokenVector, ValueUpdate
from t1x.training.batch import Batch
from t1x.training.normalizer import Normalizer
from t1x.training.objective import NegativeLogLikelihood
from t1x.training.optimizer import Optimizer
from t1x.trajectory.ending import EndedBy


class SFT(Algorithm):
    """Supervised fine-tuning on demonstrations that are recorded as it goes, a batch of the pool's tasks a step. Those that broke
    off at a limit of the harness are left out."""

    demonstrations: Demonstrations
    """Whose commands the trials run."""
    optimizer: Optimizer
    """Of the policy."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Passes over a batch."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass."""

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.optimizer, self.epochs, self.minibatches, self.normalizer, NegativeLogLikelihood())

    @property
    def critic(self) -> ValueUpdate | None:
        return None

    @property
    def demonstrator(self) -> Demonstrations | None:
        return self.demonstrations

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        return _ones(batch)

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        return [trial for trial in trials if trial.ended_by is EndedBy.DONE]


class RejectionSampling(Algorithm):
    """Fine-tuning on the policy's own successes, all of them, every token of equal weight (as RAFT, arXiv 2304.06767, which keeps
    the best of each task's attempts; here a task without a success teaches nothing)."""

    optimizer: Optimizer
    """Of the policy."""
    attempts: Annotated[int, Field(ge=1), Smoke(2)] = 8
    """Trials of each task (RAFT's K; its experiments: 8 and more)."""
    threshold: float | None = None
    """Least reward of a success; where None a trial is one if its verifier says that the task is resolved."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Passes over a batch."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass."""

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.optimizer, self.epochs, self.minibatches, self.normalizer, NegativeLogLikelihood())

    @property
    def critic(self) -> ValueUpdate | None:
        return None

    @property
    def trials_per_task(self) -> int:
        return self.attempts

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        return _ones(batch)

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        return [trial for trial in trials if self._succeeded(trial)]

    def metrics(self, trials: Sequence[Trial]) -> dict[str, float]:
        """`rejection_sampling/accepted`: the share of the trials that are learned from."""
        return {"rejection_sampling/accepted": len(self.usable(trials)) / len(trials)} if trials else {}

    def _succeeded(self, trial: Trial) -> bool:
        if self.threshold is None:
            return trial.report is not None and trial.report.resolved
        return trial.reward is not None and trial.reward >= self.threshold


def _ones(batch: Batch) -> tuple[TokenVector, TokenVector]:
    return np.ones(batch.loss_tokens), np.repeat(batch.rewards[batch.trials], batch.counts)

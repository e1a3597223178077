"""Group-relative policy optimisation."""

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from t1x.config import Smoke
from t1x.rollout.records import Trial
from t1x.training.advantage import group_relative, without_spread
from t1x.training.algorithm import Algorithm, PolicyUpdate, TokenVector, ValueUpdate
from t1x.training.batch import Batch
from t1x.training.correction import Correction
from t1x.training.normalizer import Normalizer
from t1x.training.objective import ClippedSurrogate, Objective
from t1x.training.off_policy import MixedVersions, check_versions, objection, reweighted
from t1x.training.optimizer import Optimizer


class GRPO(Algorithm):
    """Group-relative policy optimisation (report section 9.4): trials of one task are each other's baseline, and there is no
    critic. The objective is PPO's, a mean over the batch's loss tokens without a KL penalty, so that only the advantage differs.
    A group without spread stays in the batch and in what sums are divided by, with advantages of 0."""

    optimizer: Optimizer
    """Of the policy."""
    group_size: Annotated[int, Field(ge=2), Smoke(2)] = 8
    """G, trials of each task (the report names no number; 8 is this project's)."""
    objective: Objective = ClippedSurrogate()
    """What the policy's update minimises (Eq. 18)."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    correction: Correction | None = None
    """Weights for the gap between sampler and trainer; the report has none and closes the gap itself."""
    mixed_versions: MixedVersions = "refuse"
    """What becomes of a batch that several policy versions sampled."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Passes over a rollout batch (report: one)."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass (report: one optimizer step per rollout batch)."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if reason := objection(self.objective, self.correction, self.mixed_versions):
            raise ValueError(reason)
        return self

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.optimizer, self.epochs, self.minibatches, self.normalizer, self.objective)

    @property
    def critic(self) -> ValueUpdate | None:
        return None

    @property
    def trials_per_task(self) -> int:
        return self.group_size

    @property
    def decoupled(self) -> bool:
        return self.mixed_versions == "decoupled"

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        def spread(of_trials: TokenVector) -> TokenVector:
            return np.repeat(of_trials[batch.trials], batch.counts)

        return spread(group_relative(batch.rewards, self.group_size)), spread(batch.rewards)

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """All of them, or none where no group has spread."""
        return () if self._without_spread(trials).all() else trials

    def check(self, batch: Batch) -> None:
        check_versions(batch, self.mixed_versions)

    def corrected(self, advantages: TokenVector, behaviour: TokenVector, batch: Batch) -> tuple[TokenVector, dict[str, float]]:
        return reweighted(advantages, behaviour, batch, self.correction, self.mixed_versions)

    def metrics(self, trials: Sequence[Trial]) -> dict[str, float]:
        """`grpo/degenerate_groups`: the share of groups whose rewards are all equal, which contribute no gradient."""
        return {"grpo/degenerate_groups": float(self._without_spread(trials).mean())} if trials else {}

    def _without_spread(self, trials: Sequence[Trial]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return without_spread(np.array([trial.reward for trial in trials], dtype=np.float64), self.group_size)

"""Reinforcement-learning algorithms: what a rollout batch is turned into before the networks are updated."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from t1x.config import Component
from t1x.training.advantage import gae
from t1x.training.batch import Batch
from t1x.training.optimizer import Adam, Optimizer


class Algorithm(Component):
    """How rewards become gradients."""

    def advantages(self, batch: Batch, values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Advantages Â and returns R̂, both [M], from V_old [M] over the batch's loss tokens."""
        raise NotImplementedError


class PPO(Algorithm):
    """Proximal policy optimisation with a separate critic (report section 4.5); no KL penalty, advantages not normalised."""

    actor_optimizer: Optimizer
    """Of the policy."""
    critic_optimizer: Optimizer
    """Of the value network."""
    gamma: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Discount γ, counted in response tokens (Eq. 16)."""
    lam: Annotated[float, Field(ge=0, le=1)] = 1.0
    """GAE's λ (Eq. 16)."""
    clip: Annotated[float, Field(gt=0)] = 0.2
    """ε of the clipped surrogate (Eq. 18)."""
    value_clip: Annotated[float, Field(gt=0)] = 0.2
    """How far the value may move from V_old before its error is clipped (Eq. 17)."""
    actor_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the actor over a rollout batch (report: one)."""
    critic_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the critic over a rollout batch (report: one)."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass, for actor and critic (report: one optimizer step per rollout batch)."""

    @model_validator(mode="after")
    def _constant_learning_rates(self) -> "PPO":
        for name in ("actor_optimizer", "critic_optimizer"):
            optimizer = getattr(self, name)
            if isinstance(optimizer, Adam) and optimizer.decay_to != 1:
                raise ValueError(f"{name}: decay_to must be 1; a rollout loop's learning rate is constant after its warm-up")
        return self

    def advantages(self, batch: Batch, values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        return gae(values, batch.counts, batch.rewards, batch.trials, self.gamma, self.lam)

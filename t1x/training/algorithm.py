"""Reinforcement-learning algorithms: what a rollout batch is turned into before the networks are updated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from t1x.config import Component, Smoke
from t1x.rollout.records import Trial
from t1x.tasks.demonstrations import Demonstrations
from t1x.training.advantage import gae, group_relative, without_spread
from t1x.training.batch import Batch
from t1x.training.normalizer import Normalizer
from t1x.training.objective import ClippedSurrogate, Objective
from t1x.training.optimizer import Adam, Optimizer

Network = Literal["policy", "critic"]

TokenVector = npt.NDArray[np.float64]
"""[M], over a batch's loss tokens."""


@dataclass(frozen=True, slots=True)
class Update:
    """How one network is updated on a rollout batch."""

    optimizer: Optimizer
    epochs: int
    """Passes over the batch."""
    minibatches: int
    """Optimizer steps a pass."""
    normalizer: Normalizer
    """What the sum of the losses is divided by."""


@dataclass(frozen=True, slots=True)
class PolicyUpdate(Update):
    """How the policy is updated."""

    objective: Objective


@dataclass(frozen=True, slots=True)
class ValueUpdate(Update):
    """How the value network is updated."""

    clip: float
    """How far the value may move from V_old before its error is clipped (Eq. 17)."""


class Algorithm(Component):
    """How rewards become gradients."""

    @property
    def actor(self) -> PolicyUpdate:
        """How the policy is updated."""
        raise NotImplementedError

    @property
    def critic(self) -> ValueUpdate | None:
        """How the value network is updated; None where the algorithm has none, and then none is made."""
        raise NotImplementedError

    @property
    def trials_per_task(self) -> int:
        """Attempts at each task of a batch, a group. Where there are several, batches consist of whole groups."""
        return 1

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        """Advantages Â and returns R̂, both [M], from V_old [M] over the batch's loss tokens (None without a critic)."""
        raise NotImplementedError

    @property
    def demonstrations(self) -> Demonstrations | None:
        """Whose commands its trials run; the policy's own where None, which then samples them."""
        return None

    @property
    def keeps(self) -> frozenset[Network]:
        """Networks that come out of it: what a checkpoint's weights are of, beside what going on needs."""
        return frozenset({"policy"} if self.critic is None else {"policy", "critic"})

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Of a batch's trials, in order, those that it learns from. Where there are none the step updates nothing. GRPO leaves out
        none of a group but all of one without spread."""
        return trials

    def corrected(self, advantages: TokenVector, behaviour: TokenVector, batch: Batch) -> tuple[TokenVector, dict[str, float]]:
        """The advantages [M] times what the gap between sampler (q, in the batch) and trainer (o [M]) asks for, and metrics on
        it."""
        return advantages, {}

    def metrics(self, trials: Sequence[Trial]) -> dict[str, float]:
        """What only this algorithm asks of a batch's trials, by MLflow name."""
        return {}

    @model_validator(mode="after")
    def _constant_learning_rates(self) -> Self:
        for name, optimizer in self:
            if isinstance(optimizer, Adam) and optimizer.decay_to != 1:
                raise ValueError(f"{name}: decay_to must be 1; a rollout loop's learning rate is constant after its warm-up")
        return self


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
    objective: Objective = ClippedSurrogate()
    """What the policy's update minimises (Eq. 18)."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    value_clip: Annotated[float, Field(gt=0)] = 0.2
    """How far the value may move from V_old before its error is clipped (Eq. 17)."""
    actor_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the actor over a rollout batch (report: one)."""
    critic_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the critic over a rollout batch (report: one)."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass, for actor and critic (report: one optimizer step per rollout batch)."""

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.actor_optimizer, self.actor_epochs, self.minibatches, self.normalizer, self.objective)

    @property
    def critic(self) -> ValueUpdate | None:
        return ValueUpdate(self.critic_optimizer, self.critic_epochs, self.minibatches, self.normalizer, self.value_clip)

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        assert values is not None, "there is a critic"
        return gae(values, batch.counts, batch.rewards[batch.trials], batch.trials, self.gamma, self.lam)


class GRPO(Algorithm):
    """Group-relative policy optimisation (report section 9.4): trials of one task are each other's baseline, and there is no
    critic. The objective is PPO's, a mean over the batch's loss tokens without a KL penalty, so that only the advantage differs."""

    optimizer: Optimizer
    """Of the policy."""
    group_size: Annotated[int, Field(ge=2), Smoke(2)] = 8
    """G, trials of each task (the report names no number; 8 is this project's)."""
    objective: Objective = ClippedSurrogate()
    """What the policy's update minimises (Eq. 18)."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Passes over a rollout batch (report: one)."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass (report: one optimizer step per rollout batch)."""

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.optimizer, self.epochs, self.minibatches, self.normalizer, self.objective)

    @property
    def critic(self) -> ValueUpdate | None:
        return None

    @property
    def trials_per_task(self) -> int:
        return self.group_size

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        def spread(of_trials: TokenVector) -> TokenVector:
            return np.repeat(of_trials[batch.trials], batch.counts)

        return spread(group_relative(batch.rewards, self.group_size)), spread(batch.rewards)

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        useless = np.repeat(without_spread(_rewards(trials), self.group_size), self.group_size)
        return [trial for trial, skip in zip(trials, useless, strict=True) if not skip]

    def metrics(self, trials: Sequence[Trial]) -> dict[str, float]:
        """`grpo/degenerate_groups`: the share of groups whose rewards are all equal, which contribute no gradient."""
        return {"grpo/degenerate_groups": float(without_spread(_rewards(trials), self.group_size).mean())}


def _rewards(trials: Sequence[Trial]) -> TokenVector:
    return np.array([trial.reward for trial in trials], dtype=np.float64)

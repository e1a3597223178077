"""Reinforcement-learning algorithms: what a rollout batch is turned into before the networks are updated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from t1x.config import Component
from t1x.rollout.records import Trial
from t1x.tasks.demonstrations import Demonstrations
from t1x.training.batch import Batch
from t1x.training.normalizer import Normalizer
from t1x.training.objective import Objective
from t1x.training.optimizer import Optimizer

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
    def demonstrator(self) -> Demonstrations | None:
        """Whose commands its trials run; the policy's own where None, which then samples them."""
        return None

    @property
    def keeps(self) -> frozenset[Network]:
        """Networks that come out of it: what a checkpoint's weights are of, beside what going on needs."""
        return frozenset({"policy"} if self.critic is None else {"policy", "critic"})

    @property
    def decoupled(self) -> bool:
        """Whether o, the denominator of its ratios, is the current weights' on every token, not that of those that sampled it."""
        return False

    def usable(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The trials, in order, that its batch is made of. Where there are none there is nothing to learn from, and the step
        updates nothing."""
        return trials

    def check(self, batch: Batch) -> None:
        """Raises `ValueError` for a batch that isn't one it learns from."""

    def corrected(self, advantages: TokenVector, behaviour: TokenVector, batch: Batch) -> tuple[TokenVector, dict[str, float]]:
        """The advantages [M] times what the gap between sampler (q, in the batch) and trainer (o [M]) asks for, and metrics on
        it."""
        return advantages, {}

    def metrics(self, trials: Sequence[Trial]) -> dict[str, float]:
        """What only this algorithm asks of a batch's trials, by MLflow name."""
        return {}

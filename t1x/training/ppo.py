"""Proximal policy optimisation."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from t1x.training.advantage import gae
from t1x.training.algorithm import Algorithm, Network, PolicyUpdate, TokenVector, ValueUpdate
from t1x.training.batch import Batch
from t1x.training.correction import Correction
from t1x.training.normalizer import Normalizer
from t1x.training.objective import ClippedSurrogate, Objective
from t1x.training.off_policy import MixedVersions, check_versions, objection, reweighted
from t1x.training.optimizer import Optimizer


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
    bootstrap: Literal["none", "value"] = "none"
    """What a trial is worth that was cut off (by a limit of turns, context or time): its reward, as if it had ended there (report),
    or what the critic expected of going on, in place of the reward (Pardo et al., arXiv 1712.00378). Both together would pay twice
    for what was done, and so for being cut off. The estimate is V_old of its last response token, read just before that."""
    objective: Objective = ClippedSurrogate()
    """What the policy's update minimises (Eq. 18)."""
    normalizer: Normalizer = "tokens"
    """What sums of losses are divided by."""
    correction: Correction | None = None
    """Weights for the gap between sampler and trainer; the report has none and closes the gap itself."""
    mixed_versions: MixedVersions = "refuse"
    """What becomes of a batch that several policy versions sampled."""
    value_clip: Annotated[float, Field(gt=0)] = 0.2
    """How far the value may move from V_old before its error is clipped (Eq. 17)."""
    actor_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the actor over a rollout batch (report: one)."""
    critic_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes of the critic over a rollout batch (report: one)."""
    minibatches: Annotated[int, Field(ge=1)] = 1
    """Optimizer steps a pass, for actor and critic (report: one optimizer step per rollout batch)."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.objective.one_advantage:
            raise ValueError(
                f"objective {type(self.objective).__name__} takes one advantage for all tokens of a sample, but "
                f"{type(self).__name__}'s differ from token to token; use @ClippedSurrogate(), or GRPO as the algorithm"
            )
        if reason := objection(self.objective, self.correction, self.mixed_versions):
            raise ValueError(reason)
        return self

    @property
    def actor(self) -> PolicyUpdate:
        return PolicyUpdate(self.actor_optimizer, self.actor_epochs, self.minibatches, self.normalizer, self.objective)

    @property
    def critic(self) -> ValueUpdate | None:
        return ValueUpdate(self.critic_optimizer, self.critic_epochs, self.minibatches, self.normalizer, self.value_clip)

    @property
    def decoupled(self) -> bool:
        return self.mixed_versions == "decoupled"

    def advantages(self, batch: Batch, values: TokenVector | None) -> tuple[TokenVector, TokenVector]:
        assert values is not None, "there is a critic"
        rewards = batch.rewards if self.bootstrap == "none" else self._bootstrapped(batch, values)
        return gae(values, batch.counts, rewards[batch.trials], batch.trials, self.gamma, self.lam)

    def check(self, batch: Batch) -> None:
        check_versions(batch, self.mixed_versions)

    def corrected(self, advantages: TokenVector, behaviour: TokenVector, batch: Batch) -> tuple[TokenVector, dict[str, float]]:
        return reweighted(advantages, behaviour, batch, self.correction, self.mixed_versions)

    def _bootstrapped(self, batch: Batch, values: TokenVector) -> TokenVector:
        """[t]: γ V_old of a trial's last response token where it was cut off, else its reward."""
        lasts = np.full(len(batch.rewards), -1)
        lasts[batch.trials] = batch.offsets + batch.counts - 1  # of a trial's chunks the last one's stays
        cut = batch.cut_off & (lasts >= 0)
        return np.where(cut, self.gamma * np.asarray(values, dtype=np.float64)[lasts], batch.rewards)


class CriticWarmup(PPO):
    """A campaign that trains a critic for another one: both networks learn, so that the critic sees a policy that improves, and
    only the critic is kept (report section 4.5). A critic of another reward has another scale, so the campaign that starts from it
    re-calibrates it on some batches first: its `Campaign.critic_warmup` (report: N = 2)."""

    @property
    def keeps(self) -> frozenset[Network]:
        return frozenset({"critic"})

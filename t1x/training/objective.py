"""What a policy's update minimises."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from t1x.config import Component

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Losses:
    """An objective on m loss tokens."""

    losses: "Tensor"
    """[m], with gradient; the trainer adds them up under the normaliser's weights."""
    watched: "dict[str, Tensor]" = field(default_factory=dict)
    """Metric to its value at each token [m], without gradient; logged as `actor/<metric>`, the mean over loss tokens."""


class Objective(Component):
    """What a policy's update minimises: a value for each loss token."""

    off_policy: ClassVar[bool] = True
    """Whether it compares with the behaviour policy, so that the pass that gives o is needed."""
    one_advantage: ClassVar[bool] = False
    """Whether all loss tokens of a sample must have the same advantage."""

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        """The losses of m loss tokens from their current log-probabilities c [m] (with gradient), the behaviour policy's o [m]
        (None unless `off_policy`) and their advantages Â [m]. `samples` [m] int64 numbers the samples from 0, in order; a sample's
        loss tokens are all there and stand together."""
        raise NotImplementedError


class ClippedSurrogate(Objective):
    """PPO's -min(r Â, clip(r, 1 - ε, 1 + ε) Â) with r = exp(c - o), a ratio for each token (Eq. 18)."""

    clip: Annotated[float, Field(gt=0)] = 0.2
    """ε (report: 0.2)."""

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        from t1x.training.surrogate import clipped_surrogate, kl_estimates, outside_clip

        assert behaviour is not None, "it is off-policy"
        log_ratio = logprobs - behaviour
        ratio = log_ratio.exp()
        loss = clipped_surrogate(ratio, advantages, self.clip, self.clip)
        clipped = outside_clip(ratio.detach(), self.clip, self.clip)
        return Losses(loss, {"clip_fraction": clipped, "ratio": ratio.detach(), **kl_estimates(log_ratio.detach())})


class SequenceSurrogate(Objective):
    """GSPO's (arXiv 2507.18071, Eq. 5): PPO's with one ratio a sample, s = exp(mean(c - o)) over its loss tokens. Each token has
    its sample's value, so that a mean over a sample's tokens is that value: normaliser `samples` is the paper's, `tokens` lets a
    sample count by its length. A sample is a trial, or each chunk of one that was compacted."""

    one_advantage = True

    clip_low: Annotated[float, Field(gt=0)] = 3e-4
    """How far s may fall below 1 (paper, section 5.1: 3e-4)."""
    clip_high: Annotated[float, Field(gt=0)] = 4e-4
    """How far s may rise above 1 (paper, section 5.1: 4e-4)."""

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        from t1x.training.surrogate import clipped_surrogate, kl_estimates, outside_clip, sample_means

        assert behaviour is not None, "it is off-policy"
        log_ratio = logprobs - behaviour
        ratio = sample_means(log_ratio, samples).exp()
        loss = clipped_surrogate(ratio, advantages, self.clip_low, self.clip_high)
        clipped = outside_clip(ratio.detach(), self.clip_low, self.clip_high)
        return Losses(loss, {"clip_fraction": clipped, "ratio": ratio.detach(), **kl_estimates(log_ratio.detach())})


class NegativeLogLikelihood(Objective):
    """-Â c. With advantages of 1, as imitation has them, cross-entropy; with others the policy gradient without a ratio
    (REINFORCE), right only for the first optimizer step on a batch of the current weights."""

    off_policy = False

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        return Losses(-advantages * logprobs)

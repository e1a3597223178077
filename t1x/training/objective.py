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

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        """The losses of m loss tokens from their current log-probabilities c [m] (with gradient), the behaviour policy's o [m]
        (None unless `off_policy`) and their advantages Â [m]. `samples` [m] int64 numbers the samples from 0, in order; a sample's loss
        tokens are all there and stand together."""
        raise NotImplementedError


class ClippedSurrogate(Objective):
    """PPO's -min(r Â, clip(r, 1 - ε, 1 + ε) Â) with r = exp(c - o), a ratio for each token (Eq. 18)."""

    clip: Annotated[float, Field(gt=0)] = 0.2
    """ε (report: 0.2)."""

    def losses(self, logprobs: "Tensor", behaviour: "Tensor | None", advantages: "Tensor", samples: "Tensor") -> Losses:
        from t1x.training.surrogate import clipped_surrogate, kl_estimate, outside_clip

        assert behaviour is not None, "it is off-policy"
        ratio = (logprobs - behaviour).exp()
        loss = clipped_surrogate(ratio, advantages, self.clip)
        ratio = ratio.detach()
        return Losses(loss, {"clip_fraction": outside_clip(ratio, self.clip), "kl": kl_estimate(ratio), "ratio_mean": ratio})

"""Corrections of the gap between what sampled and what is trained: a weight for each loss token.

Weights are constants and never negative, so the advantages may be multiplied by them:
min(r wÂ, clip(r) wÂ) = w min(r Â, clip(r) Â).
"""

from typing import Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from t1x.config import Component

Weights = npt.NDArray[np.float64]


class Correction(Component):
    """Which weight a loss token gets for the gap between sampler and trainer."""

    limit: ClassVar[str]
    """What happens to tokens whose ratio is out of bounds, in a word: their share is logged as `actor/correction_<limit>`."""

    def weights(self, ratio: Weights) -> Weights:
        """[M], from the ratio π_trainer/π_sampler = exp(o - q) [M] of the same weights' probabilities."""
        raise NotImplementedError


class TruncatedImportance(Correction):
    """min(ratio, C) (truncated importance sampling; Ionides 2008, for this gap: Yao et al. 2025, "Your efficient RL framework
    secretly brings you off-policy RL training")."""

    limit = "truncated"

    cap: Annotated[float, Field(gt=0)] = 2.0
    """C (usual: 2)."""

    def weights(self, ratio: Weights) -> Weights:
        return np.minimum(ratio, self.cap)


class IcePop(Correction):
    """The ratio where it is in [α, β] and 0, no gradient, elsewhere (Ring-1T, arXiv 2510.18855). Masked tokens stay in what sums
    are divided by, as there."""

    limit = "masked"

    low: Annotated[float, Field(ge=0)] = 0.5
    """α (paper: 0.5)."""
    high: Annotated[float, Field(gt=0)] = 5.0
    """β (paper: 5)."""

    @model_validator(mode="after")
    def _holds_1(self) -> Self:
        if not self.low <= 1 <= self.high:
            raise ValueError(f"the interval from low = {self.low:g} to high = {self.high:g} must hold 1, the ratio without a gap")
        return self

    def weights(self, ratio: Weights) -> Weights:
        return np.where((ratio >= self.low) & (ratio <= self.high), ratio, 0.0)

"""How much of the returns' variance the critic explains (Eq. 19).

Invariant: merging the parts of a batch gives what the whole batch gives; an average of per-part values would be biased.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squared deviations, in float64, from sums shifted by the first value: a constant has exactly no
    variance."""

    count: int
    mean: float
    squares: float

    @classmethod
    def of(cls, values: npt.NDArray[np.floating]) -> Self:
        """The moments of an array [m]."""
        if len(values) == 0:
            return cls(0, 0.0, 0.0)
        values = np.asarray(values, dtype=np.float64)
        shifted = values - values[0]
        offset = float(shifted.mean())
        return cls(len(values), float(values[0]) + offset, float(np.square(shifted - offset).sum()))

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both arrays together."""
        if self.count == 0 or other.count == 0:
            return self if other.count == 0 else other
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * other.count / count,
            self.squares + other.squares + apart * apart * self.count * other.count / count,
        )


@dataclass(frozen=True, slots=True)
class ExplainedVariance:
    """EV = 1 - Var[R̂ - V] / Var[R̂] of what it has seen; parts are added with `+`."""

    returns: Moments
    errors: Moments

    @classmethod
    def of(cls, returns: npt.NDArray[np.floating], values: npt.NDArray[np.floating]) -> Self:
        """Of returns R̂ [m] and values V [m]."""
        returns = np.asarray(returns, dtype=np.float64)
        return cls(Moments.of(returns), Moments.of(returns - values))

    def __add__(self, other: "ExplainedVariance") -> "ExplainedVariance":
        return ExplainedVariance(self.returns + other.returns, self.errors + other.errors)

    @property
    def value(self) -> float | None:
        """At most 1, unbounded below; None where the returns don't vary."""
        return None if self.returns.squares == 0 else 1 - self.errors.squares / self.returns.squares


def trial_explained_variance(
    returns: npt.NDArray[np.floating],
    values: npt.NDArray[np.floating],
    counts: npt.NDArray[np.int64],
    trials: npt.NDArray[np.int64],
) -> float | None:
    """EV with one point a trial, that of its first response token: what the critic knew before the agent acted. Long trials
    dominate the token-level one. `counts` and `trials` [n] as in `gae`."""
    _, first_chunks = np.unique(trials, return_index=True)
    first_tokens = (np.cumsum(counts) - counts)[first_chunks]
    return ExplainedVariance.of(returns[first_tokens], values[first_tokens]).value

"""The log-probability gap |o - q| between an engine and the trainer (Eq. 24b), in cells that can be compared.

Invariant: trials are what is independent, so every error is over trials; cells are of the same trials, so that differences are
paired.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t1x.model.router import RouterMode

Floats = npt.NDArray[np.floating]
Counts = npt.NDArray[np.int64]

EXPERTS = {RouterMode.FREE: "own", RouterMode.REPLAY_NO_GRAD: "replayed"}
"""How a reader is told of a mode: whose choice of experts the trainer's pass takes."""

NUMBERS, GAPS, MARGINS = "gap.json", "gap.png", "margin.png"
"""Files of a report."""


class Estimate(NamedTuple):
    """A ratio over trials, or a difference of two."""

    mean: float
    stderr: float | None
    """Standard error (delta method); None where it's of a single trial, of which nobody can tell how it varies."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Under what a gap is measured."""

    dtype: str
    """Of the engine; the trainer's is its own."""
    mode: RouterMode
    """Of the trainer's pass."""
    stitcher: str
    """Name of the component."""


@dataclass(frozen=True, slots=True)
class Gap:
    """|o - q| at the loss tokens of t trials."""

    distances: Floats
    """[M], trial after trial."""
    counts: Counts
    """[t]: loss tokens of each trial; 0 where nothing was sampled."""

    @property
    def sums(self) -> Floats:
        """[t]"""
        return by_trial(np.repeat(np.arange(len(self.counts)), self.counts), self.distances, len(self.counts))

    @property
    def estimate(self) -> Estimate:
        """Σ|o - q| / M."""
        return ratio(self.sums, self.counts)

    def above(self, other: "Gap") -> Estimate:
        """How much greater this gap is than another one of the same trials."""
        a, b = self.estimate.mean, other.estimate.mean
        influence = _influence(self.sums, self.counts) - _influence(other.sums, other.counts)
        return Estimate(a - b, _error(influence, self.counts))


def effects(cells: Mapping[Cell, Gap], dtype: str, tokens: str, text: str) -> dict[str, Estimate]:
    """By how much each mechanism narrows an engine's gap: R3 with token ids kept, TITO under replay, and both together. `tokens` is
    the stitcher that keeps token ids, `text` the one that encodes anew."""
    best = cells[Cell(dtype, RouterMode.REPLAY_NO_GRAD, tokens)]
    return {
        "R3": cells[Cell(dtype, RouterMode.FREE, tokens)].above(best),
        "TITO": cells[Cell(dtype, RouterMode.REPLAY_NO_GRAD, text)].above(best),
        "both": cells[Cell(dtype, RouterMode.FREE, text)].above(best),
    }


def by_trial(trials: Counts, values: npt.NDArray[Any], count: int) -> Floats:
    """[count]: the sum of the values [n] of each trial, `trials` [n] telling whose each is."""
    return np.bincount(trials, values, count).astype(np.float64)


def ratio(sums: Floats, counts: npt.NDArray[Any]) -> Estimate:
    """Σ sums / Σ counts, both [t], the trials being independent."""
    return Estimate(float(sums.sum() / counts.sum()), _error(_influence(sums, counts), counts))


def _influence(sums: Floats, counts: npt.NDArray[Any]) -> Floats:
    """[t]: by how much each trial moves the ratio."""
    return (sums - sums.sum() / counts.sum() * counts) / counts.sum()


def _error(influence: Floats, counts: npt.NDArray[Any]) -> float | None:
    n = len(influence)
    return float(np.sqrt((influence**2).sum() * n / (n - 1))) if np.count_nonzero(counts) > 1 else None

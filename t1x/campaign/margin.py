"""The top-k margin of the routers (report, Table 4) and the experts that flip: how well the one foretells the other.

A (position, layer) pair flips where the trainer's own top-k, in a pass that routes freely, is another set than the sampler's
record. The margin γ = s_(k) - s_(k+1) is how far the trainer's router scores s, its logits, are from another choice. Scores of two
engines that differ by at most ϵ each choose differently only where γ ≤ 2ϵ.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t1x.campaign.gap import Counts, Estimate, Floats, by_trial, ratio

TENTHS, STEPS = 10, 14
"""Bins of a table, and of a curve."""
Flags = npt.NDArray[np.bool_]


class MarginBin(NamedTuple):
    """Pairs of similar margin."""

    low: float
    high: float
    """The least and the greatest margin of them."""
    median: float
    flips: Estimate
    """Share of them that flip."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Of P positions of t trials and L layers. A position j is that of routing row j, whose experts predict token j+1; rows that
    were substituted (Eq. 14) are left out, since nobody recorded them."""

    margins: Floats
    """[P, L]: γ."""
    flipped: Flags
    """[P, L]"""
    trials: Counts
    """[P]: index of the position's trial."""
    distances: Floats
    """[P]: |o - q| of the token that a position predicts, under free routing; NaN where that carries no loss."""
    count: int
    """t"""

    @property
    def rate(self) -> Estimate:
        """Share of pairs that flip."""
        return self._share(self.flipped, np.ones_like(self.flipped))

    @property
    def any_layer(self) -> Estimate:
        """Share of positions at which a layer flips."""
        return self._share(self._anywhere, np.ones(len(self.trials), np.bool_))

    @property
    def perturbation(self) -> float | None:
        """What ϵ is at least: half of the greatest margin that flipped. None where none did."""
        return float(self.margins[self.flipped].max()) / 2 if self.flipped.any() else None

    @property
    def _anywhere(self) -> Flags:
        """[P]"""
        return np.asarray(self.flipped.any(1), np.bool_)

    @property
    def gaps(self) -> tuple[Estimate | None, Estimate | None]:
        """Mean |o - q| of the loss tokens that are predicted where no layer flips, and where one does; None where there is no such
        token."""
        loss, flips = ~np.isnan(self.distances), self._anywhere
        return self._gap(loss & ~flips), self._gap(loss & flips)

    @property
    def tenths(self) -> list[MarginBin]:
        """The pairs in ten equal parts by margin, rising."""
        order = np.argsort(self.margins, axis=None, kind="stable")
        return [self._bin(part) for part in np.array_split(order, TENTHS) if len(part)]

    @property
    def steps(self) -> list[MarginBin]:
        """The pairs in equal steps of the margin's logarithm, the least hundredth of them in the first one; steps without a pair
        are left out."""
        flat = self.margins.ravel()
        least, most = (max(float(np.quantile(flat, share)), 1e-12) for share in (0.01, 1))
        edges = np.geomspace(least, most, STEPS)[:-1]
        step = np.searchsorted(edges, flat, side="right")
        return [self._bin(part) for part in (np.flatnonzero(step == index) for index in range(STEPS)) if len(part)]

    def _bin(self, pairs: Counts) -> MarginBin:
        chosen = np.zeros(self.margins.shape, np.bool_)
        chosen.flat[pairs] = True
        low, median, high = np.quantile(self.margins[chosen], (0, 0.5, 1)).tolist()
        return MarginBin(low, high, median, self._share(self.flipped & chosen, chosen))

    @property
    def auc(self) -> Estimate | None:
        """Area under the ROC curve of -γ as a forecast of flips: the probability that a pair that flips has the smaller margin of
        the two, ties counting half. The error is that of clustered data (Obuchowski 1997), trials being the clusters. None where
        all pairs flip or none does."""
        flips, stays = self.margins[self.flipped], self.margins[~self.flipped]
        if not len(flips) or not len(stays):
            return None
        of_flips, of_stays = 1 - _below(stays, flips), _below(flips, stays)
        area = float(of_flips.mean())
        where = np.broadcast_to(self.trials[:, None], self.flipped.shape)
        influence = by_trial(where[self.flipped], (of_flips - area) / len(flips), self.count)
        influence += by_trial(where[~self.flipped], (of_stays - area) / len(stays), self.count)
        several = len(np.unique(self.trials)) > 1
        return Estimate(area, float(np.sqrt((influence**2).sum() * self.count / (self.count - 1))) if several else None)

    def _share(self, what: Flags, of: Flags) -> Estimate:
        sums, counts = (by_trial(self.trials, each.reshape(len(each), -1).sum(1), self.count) for each in (what, of))
        return ratio(sums, counts)

    def _gap(self, where: Flags) -> Estimate | None:
        if not where.any():
            return None
        trials = self.trials[where]
        return ratio(by_trial(trials, self.distances[where], self.count), by_trial(trials, np.ones(len(trials)), self.count))


def _below(values: Floats, limits: Floats) -> Floats:
    """[limits]: share of `values` that is below each limit, equal ones counting half."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, limits, "left") + np.searchsorted(ordered, limits, "right")) / (2 * len(values))

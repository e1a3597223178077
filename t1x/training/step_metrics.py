"""Metrics of one network's update, gathered over its optimizer steps.

Invariant: everything comes from sums or from the values of all tokens together, so that no split shows, into micro-batches or over
ranks.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

QUANTILES = {"p01": 0.01, "p50": 0.5, "p99": 0.99, "max": 1.0}
"""Of the importance ratio, by the end of the metric's name."""


class StepMetrics:
    """Means over all values that were added under a name, in float64; of `ratio` also its quantiles. Values that aren't finite are
    left out."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._ratios: list[np.ndarray] = []

    def add(self, **vectors: Tensor) -> None:
        for name, vector in vectors.items():
            finite = vector.detach().double().cpu()
            finite = finite[finite.isfinite()]
            self._sums[name] = self._sums.get(name, 0.0) + float(finite.sum())
            self._counts[name] = self._counts.get(name, 0) + len(finite)
            if name == "ratio":
                self._ratios.append(finite.numpy())

    @classmethod
    def merged(cls, parts: Sequence["StepMetrics"]) -> "StepMetrics":
        """Of several ranks' shares."""
        whole = cls()
        for part in parts:
            for name, total in part._sums.items():
                whole._sums[name] = whole._sums.get(name, 0.0) + total
                whole._counts[name] = whole._counts.get(name, 0) + part._counts[name]
            whole._ratios += part._ratios
        return whole

    def values(self) -> dict[str, float]:
        """Metric to value; `ratio` becomes `ratio_mean`, `ratio_p01`, `ratio_p50`, `ratio_p99` and `ratio_max`."""
        found = {name: total / self._counts[name] for name, total in self._sums.items() if self._counts[name]}
        if "ratio" in found:
            found["ratio_mean"] = found.pop("ratio")
            at = np.quantile(np.concatenate(self._ratios), list(QUANTILES.values()))
            found |= {f"ratio_{name}": float(value) for name, value in zip(QUANTILES, at, strict=True)}
        return found

"""The routing rows that a session's turns captured, in the engine's positions.

Invariants:
- nothing is copied when a turn comes: rows stay in the arrays that the turns captured;
- a position has the row that was captured last, which is the one that the engine's cache serves from then on.
"""

from bisect import bisect_right
from typing import cast

import numpy as np

from t1x.model.routing_layout import Experts


class CapturedRows:
    """Rows 0 to n-1 of what the engine consumed and sampled last."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: list[Experts] = []

    def __len__(self) -> int:
        return self._starts[-1] + len(self._pieces[-1]) if self._pieces else 0

    def __getitem__(self, positions: slice) -> Experts:
        """[n, layers, k]: a view where one turn captured them all."""
        start, stop, _ = positions.indices(len(self))
        first = max(0, bisect_right(self._starts, start) - 1)
        last = max(first + 1, bisect_right(self._starts, stop - 1))
        parts = [
            piece[max(0, start - at) : max(0, stop - at)]
            for at, piece in zip(self._starts[first:last], self._pieces[first:last], strict=True)
        ]
        return parts[0] if len(parts) == 1 else cast(Experts, np.concatenate(parts))

    def resume(self, start: int, rows: Experts) -> None:
        """A turn captured `rows` [n, layers, k] from position `start` on, and kept the rows before it."""
        assert 0 <= start <= len(self)
        while self._starts and self._starts[-1] >= start:
            del self._starts[-1], self._pieces[-1]
        if self._pieces:
            self._pieces[-1] = self._pieces[-1][: start - self._starts[-1]]
        self._starts.append(start)
        self._pieces.append(rows)

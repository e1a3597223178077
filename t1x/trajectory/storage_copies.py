"""Rows of a stream that stand among other rows already: where, instead of once more.

Routing is most of a trajectory's size, and each of its rows is one that a turn captured.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.trajectory.prefix import common_prefix

Rows = npt.NDArray[Any]

CANDIDATES = 16
"""Places that are looked at where a row stands in several: of small models many rows are alike."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows as parts of a source, and those that it doesn't have."""

    parts: npt.NDArray[np.int64]
    """[parts, 2], in order: the source's row that a part begins with and how many rows it has; -1 for the next ones of `rest`."""
    rest: Rows
    """[rows, …]"""

    def rows(self, source: Rows) -> Rows:
        """The rows themselves. Raises `ValueError` where the parts don't fit."""
        pieces, taken = [self.rest[:0]], 0
        for start, count in self.parts.tolist():
            piece = self.rest[taken : taken + count] if start < 0 else source[start : start + count]
            taken += count if start < 0 else 0
            if len(piece) != count:
                raise ValueError(f"{count} rows from {start} on aren't there")
            pieces.append(piece)
        if taken != len(self.rest):
            raise ValueError(f"{len(self.rest) - taken} rows belong to no part")
        return np.concatenate(pieces)


def find_copies(rows: Rows, source: Rows) -> Copies:
    """The rows by as few parts of the source as a greedy search finds. Takes time in proportion to the rows and parts."""
    whole = Copies(np.array([(-1, len(rows))], np.int64), rows)
    if rows.shape[1:] != source.shape[1:] or rows.dtype != source.dtype or not rows.size or not source.size:
        return whole
    ours, theirs = _hashes(rows), _hashes(source)
    order = np.argsort(theirs, kind="stable")
    first, last = (np.searchsorted(theirs[order], ours, side).tolist() for side in ("left", "right"))
    parts: list[tuple[int, int]] = []
    left: list[slice] = []
    at = 0
    while at < len(ours):
        found = order[first[at] : min(last[at], first[at] + CANDIDATES)].tolist()
        start, count = max(((each, common_prefix(ours[at:], theirs[each:])) for each in found), key=_count, default=(-1, 1))
        if start < 0 and parts and parts[-1][0] < 0:
            parts[-1] = (-1, parts[-1][1] + count)
        else:
            parts.append((start, count))
        if start < 0:
            left.append(slice(at, at + count))
        at += count
    copies = Copies(np.array(parts, np.int64), np.concatenate([rows[:0], *(rows[each] for each in left)]))
    return copies if np.array_equal(copies.rows(source), rows) else whole  # else two rows have one hash


def _count(part: tuple[int, int]) -> int:
    return part[1]


def _hashes(rows: Rows) -> npt.NDArray[np.uint64]:
    """[n]: 64 bits of each row."""
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    words = np.zeros((len(rows), -(-flat.shape[1] // 8) * 8), np.uint8)
    words[:, : flat.shape[1]] = flat
    weights = np.random.default_rng(0).integers(1, 2**64, words.shape[1] // 8, np.uint64) | np.uint64(1)
    hashes: npt.NDArray[np.uint64] = words.view(np.uint64) @ weights
    return hashes

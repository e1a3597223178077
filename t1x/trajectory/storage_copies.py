"""Routing rows of a trajectory that its turns captured: where they stand there, instead of once more.

Routing is most of a trajectory's size. What a turn adds to the streams ends with the last row that it captured, so the rows that it
added are the end of what the session's turns captured; nothing is searched for. Rows that aren't there are kept as they are: a
substituted row (Eq. 14), and those of a baseline that aligned them anew.

Invariant: a trajectory takes a captured row once at most, in the order of capture, so that its rows are no more than those that are
there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.text.prefix import common_ids
from t1x.trajectory.audit_alignment import loss_spans, turns_of
from t1x.trajectory.records import Trajectory, Turn

Rows = npt.NDArray[Any]
Part = tuple[int, int]
"""The source's row that it begins with, -1 for the next of those that it doesn't have, and how many rows it has."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows as parts of a source, all rows that turns captured one after the other, and those that it doesn't have."""

    parts: npt.NDArray[np.int64]
    """[parts, 2], in order; see `Part`."""
    rest: Rows
    """[rows, …]"""

    def rows(self, source: Rows, due: int) -> Rows:
        """The rows themselves, `due` in number. Raises `ValueError` where the parts don't fit, before any memory is taken."""
        starts, counts = self.parts.T
        copied = starts >= 0
        if (counts < 1).any() or (counts > due).any() or counts.sum() != due:
            raise ValueError(f"the parts of its routing don't make up {due} rows, as many as its token ids but the last")
        if counts[~copied].sum() != len(self.rest):
            raise ValueError(f"{len(self.rest)} rows belong to parts of {counts[~copied].sum()}")
        begins, ends = starts[copied], starts[copied] + counts[copied]
        if (begins[1:] < ends[:-1]).any() or (begins > len(source)).any() or (ends > len(source)).any():
            raise ValueError(f"the parts of its routing aren't in order among {len(source)} rows that were captured")
        pieces, taken = [self.rest[:0]], 0
        for start, count in self.parts.tolist():
            pieces.append(self.rest[taken : taken + count] if start < 0 else source[start : start + count])
            taken += count if start < 0 else 0
        return np.concatenate(pieces)


def find_copies(turns: Sequence[Turn], trajectories: Sequence[Trajectory]) -> Iterator[Copies]:
    """Those of each trajectory. Takes time in proportion to the rows of the trajectories, not to what turns captured again."""
    session, known = _Session(), alike([turn.completion.routing for turn in turns])
    for stream, own in zip(trajectories, turns_of(turns, trajectories), strict=False):
        rows, parts, begin, floor = stream.routed_experts, [], 0, 0
        for turn, end in zip(own, _ends(stream, own), strict=True):
            session.follow(turn)
            if known and end > begin:
                parts += (found := session.parts(rows[begin:end], floor))
                begin, floor = end, max([floor, *(start + count for start, count in found if start >= 0)])
        yield _copies(rows, [*parts, (-1, len(rows) - begin)])


def alike(captured: Sequence[Rows]) -> bool:
    """Whether rows of all turns are of one shape and type, so that they can stand in one source."""
    return len({(each.shape[1:], each.dtype) for each in captured}) == 1


def _copies(rows: Rows, parts: list[Part]) -> Copies:
    merged: list[Part] = []
    kept, at = [rows[:0]], 0
    for start, count in parts:
        if start < 0:
            kept.append(rows[at : at + count])
        at += count
        if merged and start == (-1 if merged[-1][0] < 0 else sum(merged[-1])):
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        elif count:
            merged.append((start, count))
    return Copies(np.array(merged, np.int64).reshape(-1, 2), np.concatenate(kept))


def _ends(stream: Trajectory, turns: Sequence[Turn]) -> list[int]:
    """Where the rows end that the streams have since each turn; 0 for a turn that sampled nothing, but at the end, and where nobody
    can tell."""
    spans = loss_spans(stream.loss_mask, [len(turn.completion.ids) for turn in turns])
    if spans is None:
        return [0] * len(turns)
    ends = [span[1] - 1 if span else 0 for span in spans]
    return ends if not spans or spans[-1] else [*ends[:-1], len(stream.routed_experts)]


class _Session:
    """Where the rows of what the engine consumed last stand in the source. A position has the row that was captured last."""

    def __init__(self) -> None:
        self._captured = 0
        self._pieces: list[tuple[int, int, Rows]] = []
        """(first position, its row of the source, rows), one behind the other."""

    def follow(self, turn: Turn) -> None:
        start, rows = turn.completion.routing_start, turn.completion.routing
        while self._pieces and self._pieces[-1][0] >= start:
            self._pieces.pop()
        if self._pieces:
            first, place, piece = self._pieces[-1]
            self._pieces[-1] = first, place, piece[: start - first]
        self._pieces.append((start, self._captured, rows))
        self._captured += len(rows)

    def parts(self, rows: Rows, floor: int) -> list[Part]:
        """The rows of a stream that end with the session's last one, from the source's row `floor` on."""
        found: list[Part] = []
        left = len(rows)
        for _, place, captured in reversed(self._pieces):
            same = _common_end(rows[:left], captured[max(0, floor - place) :])
            found.append((place + len(captured) - same, same))
            left -= same
            if not left or same < len(captured):
                break
        return [(-1, left), *reversed(found)]


def _common_end(one: Rows, other: Rows) -> int:
    """How many last rows are the same."""
    n, width = min(len(one), len(other)), one[:1].size
    if not n or not width or one.shape[1:] != other.shape[1:] or one.dtype != other.dtype:
        return 0
    return common_ids(*(rows[len(rows) - n :].reshape(-1)[::-1] for rows in (one, other))) // width

"""Which positions of a stream are whose, as the auditor sees it."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from t1x.text.prefix import common_ids
from t1x.trajectory.records import Boundary, Trajectory, Turn

Span = tuple[int, int]
"""[start, stop)"""


def turns_of(turns: Sequence[Turn], trajectories: Sequence[Trajectory]) -> list[Sequence[Turn]]:
    """Those of each trajectory, and at last those that belong to none. The boundaries tell: the first trajectory has one turn more
    than boundaries, every other as many."""
    ends = np.cumsum([len(stream.boundaries) + (index == 0) for index, stream in enumerate(trajectories)], dtype=np.int64)
    return [turns[start:stop] for start, stop in pairwise([0, *ends.tolist(), len(turns)])]


def lengths_agree(stream: Trajectory) -> bool:
    n = len(stream.token_ids)
    return n == len(stream.loss_mask) == len(stream.logprobs) == len(stream.routed_experts) + 1


def versions_of(stream: Trajectory) -> npt.NDArray[np.int64]:
    """[N]: the version of each position, -1 where it has none."""
    versions = np.full(len(stream.token_ids), -1, np.int64)
    for span in stream.versions:
        versions[span.start : span.stop] = span.version
    return versions


def loss_spans(mask: npt.NDArray[np.bool_], sampled: list[int]) -> list[Span | None] | None:
    """[start, stop) of each turn's loss positions, None for a turn that sampled nothing; None where nobody can tell them apart.

    Where loss positions are as many as sampled tokens they are the turns' in order, unless that puts context into a turn; where
    not, each unbroken run of them is a turn's."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    if np.count_nonzero(mask) == sum(sampled):
        positions, spans, at = np.flatnonzero(mask), [], 0
        for count in sampled:
            own = positions[at : at + count]
            spans.append((int(own[0]), int(own[-1]) + 1) if count else None)
            at += count
        if all(span is None or span[1] - span[0] == count for span, count in zip(spans, sampled, strict=True)):
            return spans
    if len(edges) == sum(count > 0 for count in sampled):
        runs = iter(edges.tolist())
        return [(run[0], run[1]) if count and (run := next(runs)) else None for count in sampled]
    return None


def rows_without_capture(spans: Sequence[Span | None], labels: Sequence[Boundary | None]) -> set[int] | None:
    """Rows of a stream that no turn may have captured: the last of each turn that isn't continued exactly, or that added nothing to
    the stream, which then ends with an id of the turn before. None where nobody can tell where turns end."""
    ends = [span[1] for span in spans if span is not None]
    if len(ends) < len(spans):
        return None
    return {
        end - 1
        for number, end in enumerate(ends[:-1])
        if labels[number + 1] is not Boundary.EXACT or (number > 0 and ends[number - 1] == end)
    }


def aligned(stream: npt.NDArray[np.int32], sampled: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions of a loss run and the offsets of sampled ids that go with them: all where they are equally many, else their common
    beginning and end."""
    m, n = len(stream), len(sampled)
    if m == n:
        return np.arange(n), np.arange(n)
    head = common_ids(stream, sampled)
    tail = min(common_ids(stream[::-1], sampled[::-1]), min(m, n) - head)
    ends = np.arange(-tail, 0)
    return np.concatenate([np.arange(head), m + ends]), np.concatenate([np.arange(head), n + ends])


def first_difference(turns: Sequence[Turn], stream: Trajectory) -> tuple[Turn, int]:
    """The first turn whose T_i the stream doesn't begin with, and the first place that differs; where it begins with all of them,
    the last turn and the first place whose loss mask isn't the turns'."""
    n = min(len(stream.token_ids), len(stream.loss_mask))
    sampled = np.zeros(n, np.bool_)
    for turn in turns:
        consumed = np.concatenate([turn.prompt_ids, turn.completion.ids])
        at = common_ids(stream.token_ids, consumed)
        if at < len(consumed):
            return turn, at
        sampled[len(turn.prompt_ids) : len(consumed)] = True
    differs = sampled != stream.loss_mask[:n]
    return turns[-1], int(differs.argmax()) if differs.any() else n


def turn_at(turns: Sequence[Turn], spans: Sequence[Span | None], position: int) -> Turn | None:
    """The turn that a position came with; None where there is no turn."""
    behind = (turn for turn, span in zip(turns, spans, strict=True) if span is not None and position < span[1])
    return next(behind, turns[-1] if turns else None)

"""What a finding of the auditor shows."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.trajectory.audit_alignment import versions_of
from t1x.trajectory.audit_finding import AFTER, BEFORE, Kind
from t1x.trajectory.records import Trajectory, Turn


def engine_ids(turn: Turn, at: int) -> tuple[int, ...]:
    """Those of T_i around a place, as a finding shows them."""
    m = len(turn.prompt_ids)
    start, stop = max(0, at - BEFORE), at + AFTER
    parts = turn.prompt_ids[start:stop], turn.completion.ids[max(0, start - m) : max(0, stop - m)]
    return tuple(np.concatenate(parts).tolist())


def detail(kind: Kind, stream: Trajectory, place: int, turn: Turn, offset: int, versions: npt.NDArray[np.int64]) -> str:
    """The stream's value at a place, and the turn's of the sampled id that goes with it; empty where they are ids."""
    done = turn.completion
    if kind is Kind.LOGPROB:
        return f"the stream has {stream.logprobs[place]:.6g}, the turn {done.logprobs[offset]:.6g}"
    if kind is Kind.VERSION:
        return f"the stream has version {versions[place]}, the turn {done.version}"
    if kind is Kind.ROUTING:
        row = len(turn.prompt_ids) + offset - 1 - done.routing_start
        captured = done.routing[row] if 0 <= row < len(done.routing) else None
        return rows_detail(stream.routed_experts[place - 1] if place else None, captured)
    return ""


def rows_detail(row: Experts | None, captured: Experts | None) -> str:
    """The first layer in which two rows [layers, k] differ."""
    if captured is None or row is None:
        return "no turn captured this row" if captured is None else "no row predicts the first token"
    layer = _differing(row, captured)
    return f"layer {layer}: the stream has {row[layer].tolist()}, the turn captured {captured[layer].tolist()}"


def values(kind: Kind, stream: Trajectory, at: int, turn: Turn, engine_at: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What differs beside the ids that a finding shows around a place of the stream and the one of T_i that goes with it, as the
    stream has it and as the turn captured it. Nothing where ids differ, or a turn as a whole."""
    m, done = len(turn.prompt_ids), turn.completion
    places = range(max(0, at - BEFORE), min(at + AFTER, len(stream.token_ids)))
    offsets = range(max(0, engine_at - BEFORE) - m, min(engine_at + AFTER - m, len(done.ids)))
    if kind is Kind.LOGPROB:
        has = stream.loss_mask | (stream.logprobs != 0)
        own = (f"{stream.logprobs[place]:.6g}" if has[place] else "" for place in places)
        return tuple(own), tuple(f"{done.logprobs[each]:.6g}" if each >= 0 else "" for each in offsets)
    if kind is Kind.VERSION:
        versions = versions_of(stream)
        own = (f"{versions[place]}" if stream.loss_mask[place] and versions[place] >= 0 else "" for place in places)
        return tuple(own), tuple(f"{done.version}" if each >= 0 else "" for each in offsets)
    if kind in (Kind.ROUTING, Kind.ROW):
        back = kind is Kind.ROUTING  # a loss position goes with the row that predicts it, a context position with its own
        rows, captured = stream.routed_experts, done.routing
        shift = m - done.routing_start - back
        layer = _differing(_row(rows, at - back), _row(captured, engine_at - m + shift))
        return tuple(_told(rows, (p - back for p in places), layer)), tuple(_told(captured, (o + shift for o in offsets), layer))
    return (), ()


def _row(rows: Experts, index: int) -> Experts | None:
    return rows[index] if 0 <= index < len(rows) else None


def _differing(row: Experts | None, captured: Experts | None) -> int:
    """The first layer in which two rows differ; 0 where they can't be compared."""
    if row is None or captured is None or row.shape != captured.shape or not row.size:
        return 0
    return int((row != captured).any(axis=1).argmax())


def _told(rows: Experts, indices: Iterator[int], layer: int) -> Iterator[str]:
    """One layer's experts of rows; "" where there is no such row or layer."""
    for index in indices:
        row = _row(rows, index)
        yield "" if row is None or layer >= len(row) else " ".join(map(str, row[layer].tolist()))

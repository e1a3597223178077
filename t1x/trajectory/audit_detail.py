"""What a finding of the auditor shows."""

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
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
    layer = int((row != captured).any(axis=1).argmax())
    return f"layer {layer}: the stream has {row[layer].tolist()}, the turn captured {captured[layer].tolist()}"

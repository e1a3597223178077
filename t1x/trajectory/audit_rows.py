"""Routing rows of a stream against those that turns captured: the invariants of routing alignment (report, section 12.3) that the
auditor answers for. A flag is true where a row breaks the invariant."""

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.trajectory.records import Trajectory, Turn


def rows_of_tokens(stream: Trajectory, rows: slice, captured: Experts | None, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """4. Row j goes with token j and predicts token j + 1: the stream's `rows` are those `captured` for the `ids` that stand there.
    No row goes where nothing was captured."""
    here = stream.routed_experts[rows]
    if captured is None or captured.shape != here.shape:
        return np.ones(len(here), np.bool_)
    return _differ(here, captured) | (stream.token_ids[rows] != ids)


def rows_of_loss_positions(
    rows: Experts, positions: npt.NDArray[np.int64], turn: Turn, offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """6. The row that predicts a loss position comes from the turn, and so from the version, that sampled it. `positions` [n] of
    the stream whose `rows` these are hold the turn's sampled ids at `offsets` [n]."""
    done = turn.completion
    first = len(turn.prompt_ids) - 1 - done.routing_start
    if not len(positions):
        return np.zeros(0, np.bool_)
    there = first + offsets
    if positions[0] < 1 or there[0] < 0 or there[-1] >= len(done.routing) or done.routing.shape[1:] != rows.shape[1:]:
        return np.ones(len(positions), np.bool_)
    return _differ(_taken(rows, positions - 1), _taken(done.routing, there))


def _taken(rows: Experts, at: npt.NDArray[np.int64]) -> Experts:
    """A view where the places are neighbours."""
    return rows[at[0] : at[-1] + 1] if at[-1] - at[0] + 1 == len(at) else rows[at]


def _differ(rows: Experts, others: Experts) -> npt.NDArray[np.bool_]:
    return (rows != others).any(axis=(1, 2))

"""Whether a trial can be stored: shapes, types and ranges of its records, so that whoever reads them may use them as indices and
show them. What was made of the captures is the auditor's to judge."""

from itertools import pairwise
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from t1x.engine.protocol import FinishReason
from t1x.trajectory.invariants import rows_of_a_turn, stitched_rows
from t1x.trajectory.records import Trajectory
from t1x.trajectory.storage_copies import Rows
from t1x.trajectory.stored import StoredTrial


def check(trial: StoredTrial) -> None:
    """Shapes, types and ranges of everything, as the records' docstrings have them. Raises `ValueError`."""
    for number, turn in enumerate(trial.turns):
        done, where = turn.completion, f"turn {number}"
        if done.finish_reason not in get_args(FinishReason):
            raise ValueError(f"{where}: finish_reason is {done.finish_reason!r}, not one of {', '.join(get_args(FinishReason))}")
        _are_ids(turn.prompt_ids, f"{where}: prompt_ids")
        _are_ids(done.ids, f"{where}: ids")
        _is(done.logprobs, np.float32, len(done.ids), f"{where}: logprobs")
        _is_routing(done.routing, where)
        _holds(rows_of_a_turn(turn), where)
        if turn.rendered is not None:
            encoded = turn.rendered.encoded
            _are_ids(encoded.ids, f"{where}: rendered ids")
            _is(encoded.starts, np.int32, len(encoded.ids), f"{where}: starts of the rendered ids")
    for number, stream in enumerate(trial.trajectories):
        check_stream(stream, f"trajectory {number}")


def check_stream(stream: Trajectory, where: str) -> None:
    """The same of one trajectory, which the error calls `where`. Raises `ValueError`."""
    n = len(stream.token_ids)
    _are_ids(stream.token_ids, f"{where}: token_ids")
    _is(stream.loss_mask, np.bool_, n, f"{where}: loss_mask")
    _is(stream.logprobs, np.float32, n, f"{where}: logprobs")
    _is_routing(stream.routed_experts, where)
    _holds(stitched_rows(stream), where)
    _holds(_out_of_range(stream), where)


def _are_ids(array: npt.NDArray[Any], what: str) -> None:
    _is(array, np.int32, len(array), what)
    if array.min(initial=0) < 0:
        raise ValueError(f"{what} have {array.min()} among them")


def _is(array: npt.NDArray[Any], dtype: npt.DTypeLike, length: int, what: str) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise ValueError(f"{what} are {array.dtype} {list(array.shape)}, but must be {np.dtype(dtype)} [{length}]")


def _is_routing(experts: Rows, where: str) -> None:
    if experts.ndim != 3 or experts.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"{where}: routing is {experts.dtype} {list(experts.shape)}, not uint8 or uint16 [rows, layers, k]")


def _out_of_range(stream: Trajectory) -> str:
    n = len(stream.token_ids)
    rows = [-1, *stream.substituted_rows, n - 1]
    if any(row >= following for row, following in pairwise(rows)):
        return f"its substituted rows aren't in order among {n - 1} rows"
    if bad := next((span for span in stream.versions if not 0 <= span.start < span.stop <= n), None):
        return f"version {bad.version} is that of tokens [{bad.start}, {bad.stop}) of {n}"
    return ""


def _holds(flaw: str, where: str) -> None:
    if flaw:
        raise ValueError(f"{where}: {flaw}")

"""Whether a trial can be stored: shapes and types of its records."""

from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.trajectory.invariants import rows_of_a_turn, stitched_rows
from t1x.trajectory.storage_copies import Rows
from t1x.trajectory.stored import StoredTrial


def check(trial: StoredTrial) -> None:
    """Shapes and types of everything, as the records' docstrings have them. Raises `ValueError`."""
    for number, turn in enumerate(trial.turns):
        done, where = turn.completion, f"turn {number}"
        _is(turn.prompt_ids, np.int32, len(turn.prompt_ids), f"{where}: prompt_ids")
        _is(done.ids, np.int32, len(done.ids), f"{where}: ids")
        _is(done.logprobs, np.float32, len(done.ids), f"{where}: logprobs")
        _is_routing(done.routing, where)
        _holds(rows_of_a_turn(turn), where)
        if turn.rendered is not None:
            encoded = turn.rendered.encoded
            _is(encoded.ids, np.int32, len(encoded.ids), f"{where}: rendered ids")
            _is(encoded.starts, np.int32, len(encoded.ids), f"{where}: starts of the rendered ids")
    for number, stream in enumerate(trial.trajectories):
        n, where = len(stream.token_ids), f"trajectory {number}"
        _is(stream.token_ids, np.int32, n, f"{where}: token_ids")
        _is(stream.loss_mask, np.bool_, n, f"{where}: loss_mask")
        _is(stream.logprobs, np.float32, n, f"{where}: logprobs")
        _is_routing(stream.routed_experts, where)
        _holds(stitched_rows(stream), where)


def _is(array: npt.NDArray[Any], dtype: npt.DTypeLike, length: int, what: str) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise ValueError(f"{what} are {array.dtype} {list(array.shape)}, but must be {np.dtype(dtype)} [{length}]")


def _is_routing(experts: Rows, where: str) -> None:
    if experts.ndim != 3 or experts.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"{where}: routing is {experts.dtype} {list(experts.shape)}, not uint8 or uint16 [rows, layers, k]")


def _holds(flaw: str, where: str) -> None:
    if flaw:
        raise ValueError(f"{where}: {flaw}")

"""What holds for a turn whatever came before it; its routing is `routing.py`'s.

Invariant: a stream keeps captures as they are, so their types are those of the streams: nothing wraps, is cut or overflows.
"""

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import StitchingError

ROUNDING = 1e-4
"""By how much a log-probability may exceed 0: float32 holds logits of up to 1,000 to 3e-5, so their log-softmax may miss by more
than one rounding of that."""


def check_turn(turn: Turn, index: int, vocab_size: int) -> None:
    """Raises `StitchingError` unless the turn is number `index` and could have been sampled from a vocabulary of this size."""
    if turn.index != index:
        raise StitchingError(f"turn {turn.index} came where turn {index} was due")
    if flaw := _flaw(turn, vocab_size):
        raise StitchingError(f"turn {turn.index}: {flaw}")


def _flaw(turn: Turn, vocab_size: int) -> str:
    """What is wrong; "" where nothing is."""
    done = turn.completion
    for name, ids in (("prompt", turn.prompt_ids), ("completion", done.ids)):
        if flaw := _ids_flaw(ids, vocab_size):
            return f"its {name} {flaw}"
    prompt = len(turn.prompt_ids)
    if not prompt:
        return "its prompt is empty"
    if done.logprobs.dtype != np.float32 or done.logprobs.shape != done.ids.shape:
        got = f"{done.logprobs.dtype} {list(done.logprobs.shape)}"
        return f"{len(done.ids)} sampled ids need as many float32 log-probabilities, got {got}"
    wrong = ~(np.isfinite(done.logprobs) & (done.logprobs <= ROUNDING))
    if wrong.any():
        at = int(wrong.argmax())
        return f"the log-probability of sampled id {at} is {done.logprobs[at]}, which is the logarithm of no probability"
    if not (isfinite(turn.temperature) and turn.temperature >= 0):
        return f"its temperature is {turn.temperature}; it's 0 (greedy) or above"
    if done.version < 0:
        return f"its version is {done.version}; it counts optimizer updates from 0"
    for name, count in (("cached_tokens", done.cached_tokens), ("placeholder_tokens", turn.placeholder_tokens)):
        if not 0 <= count <= prompt:
            return f"its {name} are {count}, of a prompt of {prompt}"
    if turn.rendered is not None and not np.array_equal(turn.rendered.encoded.ids, turn.prompt_ids):
        return "the ids of its rendered text aren't those of its prompt"
    return ""


def _ids_flaw(ids: npt.NDArray[Any], vocab_size: int) -> str:
    if ids.dtype != np.int32 or ids.ndim != 1:
        return f"is of type {ids.dtype} and shape {list(ids.shape)}; token ids are int32 [n]"
    least, most = ids.min(initial=0), ids.max(initial=0)
    if least < 0 or most >= vocab_size:
        return f"has the id {least if least < 0 else most}, and the vocabulary has ids from 0 to {vocab_size - 1}"
    return ""

"""What no engine can have sampled, from right turns: everything is checked before anything is appended (`tests/fidelity` too)."""

import dataclasses

import numpy as np
import pytest
from toy_text import BY_NAME, LAYOUT, PIECES, TOY, seen, turn

from t1x.trajectory.stitcher import StitchingError, TokenStitcher
from t1x.trajectory.turn_check import ROUNDING

SECOND = turn(1, "<u> a <a> ls <e> <t>", "la <e>", start=4)
IDS, LOGPROBS = SECOND.completion.ids, SECOND.completion.logprobs


def change(**values):
    return dataclasses.replace(SECOND, completion=dataclasses.replace(SECOND.completion, **values))


def of_turn(**values):
    return dataclasses.replace(SECOND, **values)


WRONG = {
    "id that 32 bits wrap": (
        change(ids=IDS + np.int64(2**32)),
        r"its completion is of type int64 and shape \[2\]; token ids are int32",
    ),
    "ids of floats": (change(ids=IDS + 0.5), "its completion is of type float64"),
    "ids in two dimensions": (change(ids=IDS[:, None], logprobs=LOGPROBS[:, None]), r"int32 and shape \[2, 1\]"),
    "negative id": (change(ids=-IDS), rf"its completion has the id -{max(IDS)}"),
    "id beyond the vocabulary": (change(ids=IDS + len(PIECES)), "has the id .*, and the vocabulary has ids from 0 to 42"),
    "prompt that 32 bits wrap": (of_turn(prompt_ids=SECOND.prompt_ids + np.int64(2**32)), "its prompt is of type int64"),
    "negative id in the prompt": (of_turn(prompt_ids=-SECOND.prompt_ids), "its prompt has the id -"),
    "log-probability above 0": (change(logprobs=-LOGPROBS), "log-probability of sampled id 0 is 2.0"),
    "just above rounding": (change(logprobs=np.float32([-1, 2 * ROUNDING])), "log-probability of sampled id 1 is"),
    "probability of 0": (change(logprobs=np.float32([-1, -np.inf])), "log-probability of sampled id 1 is -inf"),
    "log-probabilities that 32 bits overflow": (
        change(logprobs=np.float64([-1e300, -1])),
        r"float32 log-probabilities, got float64 \[2\]",
    ),
    "temperature that is no number": (of_turn(temperature=float("nan")), "its temperature is nan"),
    "infinite temperature": (of_turn(temperature=float("inf")), "its temperature is inf"),
    "temperature below 0": (of_turn(temperature=-0.5), "its temperature is -0.5"),
    "version below 0": (change(version=-1), "its version is -1"),
    "cached beyond the prompt": (change(cached_tokens=7), "its cached_tokens are 7, of a prompt of 6"),
    "cached below 0": (change(cached_tokens=-1), "its cached_tokens are -1"),
    "placeholders beyond the prompt": (of_turn(placeholder_tokens=7), "its placeholder_tokens are 7"),
    "placeholders below 0": (of_turn(placeholder_tokens=-1), "its placeholder_tokens are -1"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_it_is_refused_and_changes_nothing(wrong, message):
    worker = TokenStitcher().build(TOY, LAYOUT)
    worker.add(turn(0, "<u> a <a>", "ls <e>"))
    before = [seen(stream) for stream in worker.finish()]
    with pytest.raises(StitchingError, match=f"turn 1: .*{message}"):
        worker.add(wrong)
    assert [seen(stream) for stream in worker.finish()] == before
    worker.add(SECOND)
    assert seen(worker.finish()[0])[2] == ["exact"]


def test_a_turn_at_the_limits_of_what_can_be_is_taken():
    """Rounding, greedy sampling, the last id of the vocabulary, a prompt that another session's cache holds."""
    assert max(BY_NAME.values()) == TOY.vocab_size - 1
    first = turn(0, "<u> a <a>", "</think> <e>", cached=3)
    done = dataclasses.replace(first.completion, logprobs=np.float32([ROUNDING / 2, 0]))
    worker = TokenStitcher().build(TOY, LAYOUT)
    worker.add(dataclasses.replace(first, completion=done, temperature=0.0, placeholder_tokens=3))
    assert worker.finish()[0].logprobs[-2:].tolist() == done.logprobs.tolist()

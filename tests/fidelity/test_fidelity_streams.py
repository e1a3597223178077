"""Every stream, boundary, version and routing row is what the rules say, token by token; what the rules refuse is refused."""

from contextlib import suppress

import hypothesis
import numpy as np
from hypothesis import Phase, given, settings
from promises import promise
from slow_stitcher import SlowStitcher
from small_chats import STOP, Style, small_chat
from stitched_world import stitch_world
from streams import plain
from worlds import World, row_of, worlds

from t1x.engine.protocol import Completion
from t1x.trajectory.records import Boundary, Turn
from t1x.trajectory.stitcher import StitchingError


def by_the_rules(world):
    """(chunks up to the first turn that is refused, its error)"""
    slow = SlowStitcher(world.chat, world.layout)
    for turn in world.turns:
        try:
            slow.add(turn)
        except StitchingError as error:
            return slow.chunks, error
    return slow.chunks, None


@given(worlds)
@promise
def test_streams_are_those_of_the_slow_stitcher(world):
    chunks, refused = by_the_rules(world)
    got = stitch_world(world)
    assert plain(got.trajectories) == chunks
    assert type(got.error) is type(refused), (got.error, refused)
    assert refused is None or f"turn {len(got.taken)}" in str(got.error)
    for stream in got.trajectories:
        assert (stream.token_ids.dtype, stream.loss_mask.dtype, stream.logprobs.dtype) == (np.int32, np.bool_, np.float32)
        layers, k, dtype = row_of(world.layout)
        assert stream.routed_experts.dtype == dtype
        assert stream.routed_experts.shape == (len(stream.token_ids) - 1, layers, k)


def test_the_worlds_hold_every_case():
    """A property that never meets a case says nothing about it."""
    by_text = {("by text", case) for case in ("exact", "edge", "retokenized", "restart")}
    due, met = by_text | {("by ids", "exact"), ("by ids", "restart"), "substituted", "refused"}, set()

    def all_are_met(world):
        chunks, refused = by_the_rules(world)
        kind = "by text" if world.turns[0].rendered is not None else "by ids"
        met.update((kind, case) for chunk in chunks for case in chunk["boundaries"])
        met.update({"substituted"} if any(chunk["substituted"] for chunk in chunks) else (), {"refused"} if refused else ())
        return met >= due

    with suppress(hypothesis.errors.NoSuchExample):
        hypothesis.find(worlds, all_are_met, settings=settings(promise, database=None, derandomize=True, phases=[Phase.generate]))
    assert met >= due


def test_a_space_that_the_tokenizer_might_have_put_there_is_an_answer_too():
    """`▁` behind `<|assistant|>` is the answer's space, which decoding takes for the tokenizer's own. Sampled were bytes for it."""
    chat = small_chat("always", 3, Style(before_stop="\n"))
    space = chat.pieces.index(b" ")
    before, after = chat.prompt([("user", "a")]), chat.prompt([("user", "a"), ("assistant", " "), ("tool", "")])
    turns = []
    for index, (prompt, ids) in enumerate([(before, [space, space, STOP]), (after, [space, STOP])]):
        ids = np.array(ids, np.int32)
        n = len(prompt.encoded.ids) + len(ids) - 1
        done = Completion(ids, np.full(len(ids), -1, np.float32), np.zeros((n, 0, 0), np.uint8), 0, "stop", 0)
        turns.append(Turn(index, prompt.encoded.ids, done, 1.0, rendered=prompt))
    world = World(chat, None, turns)
    got = stitch_world(world)
    assert got.error is None
    assert got.trajectories[0].boundaries == (Boundary.RETOKENIZED,)
    assert plain(got.trajectories) == by_the_rules(world)[0]

"""Every stream, boundary, version and routing row is what the rules say, token by token; what the rules refuse is refused."""

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from promises import promise
from slow_stitcher import SlowStitcher
from stitched_world import stitch_world
from streams import plain
from worlds import row_of, worlds

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


FIRST = settings(max_examples=500, database=None, derandomize=True, phases=[hypothesis.Phase.generate])


@pytest.mark.parametrize(
    ("case", "by_text"),
    [("exact", True), ("edge", True), ("retokenized", True), ("restart", True), ("exact", False), ("restart", False)],
)
def test_the_worlds_hold_every_case(case, by_text):
    """A property that never meets a case says nothing about it."""

    def meets(world):
        chunks, _ = by_the_rules(world)
        return by_text == (world.turns[0].rendered is not None) and any(case in chunk["boundaries"] for chunk in chunks)

    assert any(case in t.boundaries for t in stitch_world(hypothesis.find(worlds, meets, settings=FIRST)).trajectories)


def test_the_worlds_hold_substituted_rows():
    def meets(world):
        return any(chunk["substituted"] for chunk in by_the_rules(world)[0])

    assert any(t.substituted_rows for t in stitch_world(hypothesis.find(worlds, meets, settings=FIRST)).trajectories)


def test_the_worlds_hold_what_is_refused():
    def meets(world):
        return by_the_rules(world)[1] is not None

    assert stitch_world(hypothesis.find(worlds, meets, settings=FIRST)).error is not None

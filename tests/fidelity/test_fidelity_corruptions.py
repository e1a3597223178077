"""Each class of corrupted input is refused by its own error, which names the turn, and leaves every stream untouched."""

from dataclasses import replace

import numpy as np
import pytest
from corruptions import histories, records, samples
from hypothesis import given
from promises import promise
from slow_stitcher import SlowStitcher
from small_chats import Style, small_chat
from stitched_world import build, stitch_world
from streams import plain
from worlds import Step, World, happen, row_of, worlds

from t1x.model.routing_layout import RoutingLayout
from t1x.trajectory.stitcher import StitchingError


def slow_until(world, index):
    slow = SlowStitcher(world.chat, world.layout)
    for turn in world.turns[:index]:
        slow.add(turn)
    return slow


def refused(world, index):
    """Tries every corruption of a turn that is taken; gives the kinds that were refused."""
    turn, before = world.turns[index], world.turns[index - 1] if index else None
    slow = slow_until(world, index)
    rows = slow.captured(turn, turn.prompt_ids.tolist())
    layers, k, dtype = row_of(world.layout)
    known = np.array(rows, dtype).reshape(len(rows), layers, k)
    stitcher = build(world)
    for earlier in world.turns[:index]:
        stitcher.add(earlier)
    untouched = plain(stitcher.finish())
    kinds = set()
    bad = [*records(turn, world.layout, before, known), *samples(turn, before)]
    so_far = World(world.chat, world.layout, world.turns[: index + 1])
    if untouched and len(untouched) == len(stitch_world(so_far).trajectories):
        bad.append(("other temperature", replace(turn, temperature=0.5), StitchingError))
    for kind, wrong in histories(turn, before):
        try:
            slow_until(world, index).add(wrong)
        except StitchingError as due:
            bad.append((kind, wrong, type(due)))
    for kind, wrong, error in bad:
        with pytest.raises(error, match=f"turn {wrong.index}") as caught:
            stitcher.add(wrong)
        assert type(caught.value) is error, kind
        assert plain(stitcher.finish()) == untouched, kind
        kinds.add(kind)
    stitcher.add(turn)
    slow.add(turn)
    assert plain(stitcher.finish()) == slow.chunks
    return kinds


@given(worlds)
@promise
def test_what_is_corrupted_is_refused_and_loses_nothing(world):
    taken = stitch_world(world).taken
    if taken:
        refused(world, len(taken) - 1)


def test_every_class_of_corruption_is_tried():
    """In ordinary trials of three turns, whose last boundary is `RETOKENIZED` in some: the policy splits its text as it likes."""
    step = Step("go on", False, ("a", "b", "ab", "</think>"), False, "stop", ("a b\n",), False, 0.0, "delta", False)
    chat, tried = small_chat("bytes", 2, Style()), set()
    for seed in range(8):
        for layout in (RoutingLayout(2, 2, 8), None):
            tried |= refused(happen(chat, [step] * 3, layout, seed), 2)
    assert tried == {
        *("first row missing", "last row missing", "row twice", "no rows", "duplicate expert", "expert out of range"),
        *("layer of zeros", "flat rows", "begins one later", "begins one earlier", "no layers", "a layer more", "an expert fewer"),
        *("other type", "rows that nobody has", "row from the cache differs", "NaN log-probability", "infinite log-probability"),
        *("a log-probability more", "a log-probability fewer", "empty prompt", "turn left out", "turn again"),
        *("text of another prompt", "other temperature", "first id rewritten", "an id rewritten", "span of another text"),
        *(
            "an id dropped",
            "experts of a model that has none",
            "log-probability above 0",
            "id beyond the vocabulary",
            "negative id",
        ),
        *("ids of 64 bits", "ids of floats", "ids in two dimensions", "log-probabilities of 64 bits", "prompt of 64 bits"),
        *("prompt negative", "temperature that isn't finite", "temperature below 0", "version below 0", "cached below 0"),
        *("cached beyond the prompt", "placeholders below 0", "placeholders beyond the prompt"),
    }

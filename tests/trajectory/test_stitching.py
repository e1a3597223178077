"""What the token stitcher refuses and hands out; which streams it makes is in test_stitching_cases.py and tests/fidelity."""

import dataclasses

import numpy as np
import pytest
from random_turns import Plan, make_turns, rows, stitch, worker_for
from streams import change, plain

from t1x.config import Component
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import (
    ExactStitcher,
    RetokenizingStitcher,
    RoutingRecordError,
    Stitcher,
    TokenFidelityError,
    TokenStitcher,
)

PLAN = [Plan(3, 3, False, 0, 0), Plan(2, 2, False, 0, 0), Plan(2, 3, False, 0, 0)]


def test_the_error_names_the_first_difference():
    first, second, _ = make_turns(PLAN, (2, 2))
    prompt = second.prompt_ids.copy()
    prompt[5] = 699
    with pytest.raises(TokenFidelityError, match=r"turn 1: .* differ at index 5: .*699.*`restarted`"):
        stitch([first, dataclasses.replace(second, prompt_ids=prompt)])
    with pytest.raises(TokenFidelityError, match="differ at index 3"):
        stitch(
            [
                first,
                change(
                    dataclasses.replace(second, prompt_ids=second.prompt_ids[:3]),
                    routing=second.completion.routing[:0],
                    routing_start=4,
                ),
            ]
        )


def test_the_first_turn_has_no_cache_to_take_rows_from():
    first = make_turns(PLAN, (2, 2))[0]
    with pytest.raises(RoutingRecordError, match="no earlier turn"):
        stitch([change(first, routing=first.completion.routing[1:], routing_start=1)])


@pytest.mark.parametrize(("cached", "shared"), [(1, 0), (4, 3), (10, 8)])
def test_rows_from_a_cache_belong_to_the_same_ids(cached, shared):
    """After a restart the engine leaves out rows of ids that the chunk before, of 9 ids, doesn't have."""
    (first,) = make_turns([Plan(5, 3, False, 0, 0)], (2, 2))
    history = np.concatenate([first.prompt_ids, first.completion.ids])
    prompt = np.concatenate([history[:shared], np.full(12 - shared, 1, np.int32)])
    done = dataclasses.replace(
        first.completion, routing=rows(np.random.default_rng(0), 12 + 3 - 1 - cached, (2, 2)), routing_start=cached
    )
    stitcher = worker_for([first])
    stitcher.add(first)
    before = plain(stitcher.finish())
    with pytest.raises(RoutingRecordError, match="no earlier turn"):
        stitcher.add(Turn(1, prompt, done, first.temperature, restarted=True))
    assert plain(stitcher.finish()) == before


def test_trajectories_are_read_only_and_stay_what_they_were():
    first, second, third = make_turns(PLAN, (2, 2))
    stitcher = worker_for([first])
    stitcher.add(first)
    early = stitcher.finish()
    seen = plain(early)
    stitcher.add(second)
    stitcher.add(third)
    assert plain(early) == seen
    for array in (early[0].token_ids, early[0].loss_mask, early[0].logprobs, early[0].routed_experts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_versions_are_spans():
    plan = [Plan(1, 2, False, 0, version) for version in (5, 5, 6, 6, 7)]
    (trajectory,) = stitch(make_turns(plan, (1, 2)))
    assert [span.version for span in trajectory.versions] == [5, 6, 7]
    assert [(span.start, span.stop) for span in trajectory.versions] == [(2, 7), (8, 13), (14, 16)]


def test_the_stitcher_is_a_registered_component():
    assert Component.registry["TokenStitcher"] is TokenStitcher


def test_a_stitcher_says_what_its_edges_may_drop():
    assert TokenStitcher(dropped_ids=3).droppable == RetokenizingStitcher(dropped_ids=3).droppable == 3
    assert ExactStitcher().droppable == 0, "it takes no edge"
    assert Stitcher().droppable is None, "nobody knows"

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from promises import promise
from random_turns import Plan, layouts, make_turns, plans, reference, rows, stitch, worker_for

from t1x.config import Component
from t1x.trajectory.records import Boundary, Turn
from t1x.trajectory.stitcher import RoutingRecordError, StitchingError, TokenFidelityError, TokenStitcher


def streams(trajectories):
    """Everything of the trajectories, as plain values."""
    return [
        {
            "ids": t.token_ids.tolist(),
            "mask": t.loss_mask.tolist(),
            "logprobs": t.logprobs.tolist(),
            "rows": dict(enumerate(t.routed_experts.tolist())),
            "versions": [
                next((s.version for s in t.versions if s.start <= j < s.stop and m), None) for j, m in enumerate(t.loss_mask)
            ],
            "boundaries": [str(b) for b in t.boundaries],
        }
        for t in trajectories
    ]


def change(turn, **values):
    """The turn with parts of its completion replaced."""
    return dataclasses.replace(turn, completion=dataclasses.replace(turn.completion, **values))


PLAN = [Plan(3, 3, False, 0, 0), Plan(2, 2, False, 0, 0), Plan(2, 3, False, 0, 0)]


@given(plans, layouts, st.integers(0, 9))
@promise
def test_streams_are_those_of_the_token_by_token_reference(plan, layout, seed):
    turns = make_turns(plan, layout, seed)
    trajectories = stitch(turns)
    assert streams(trajectories) == reference(turns)
    for trajectory in trajectories:
        assert trajectory.token_ids.dtype == np.int32
        assert trajectory.logprobs.dtype == np.float32
        assert trajectory.routed_experts.shape == (len(trajectory.token_ids) - 1, *layout)  # invariant 3


def test_a_worked_example():
    """Two turns: [7 8] samples [9 1], then [7 8 9 1 | 5 6] samples [4]."""
    first, second = make_turns([Plan(1, 2, False, 0, 3), Plan(2, 1, False, 0, 4)], (1, 2))
    experts = np.arange(12, dtype=np.uint8).reshape(6, 1, 2)
    first = dataclasses.replace(change(first, ids=np.array([9, 1]), routing=experts[:3]), prompt_ids=np.array([7, 8]))
    second = change(second, ids=np.array([4]), routing=experts[3:], routing_start=3)
    second = dataclasses.replace(second, prompt_ids=np.array([7, 8, 9, 1, 5, 6]))
    (trajectory,) = stitch([first, second])
    assert trajectory.token_ids.tolist() == [7, 8, 9, 1, 5, 6, 4]
    assert trajectory.loss_mask.tolist() == [False, False, True, True, False, False, True]
    assert trajectory.routed_experts[:, 0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert trajectory.boundaries == (Boundary.EXACT,)
    assert [(span.version, trajectory.loss_mask[span.start : span.stop].any()) for span in trajectory.versions] == [
        (3, True),
        (4, True),
    ]


def corruptions(turn):
    """Every way that a turn after the first can be wrong."""
    done = turn.completion
    prompt = turn.prompt_ids.copy()
    prompt[0] += 1
    yield "changed history", dataclasses.replace(turn, prompt_ids=prompt), TokenFidelityError
    missing = dataclasses.replace(turn, prompt_ids=turn.prompt_ids[1:])
    yield "dropped id", change(missing, routing=done.routing[:-1]), TokenFidelityError
    yield "short record", change(turn, routing=done.routing[:-1]), RoutingRecordError
    yield "long record", change(turn, routing=np.concatenate([done.routing, done.routing[-1:]])), RoutingRecordError
    yield "absent record", change(turn, routing=done.routing[:0]), RoutingRecordError
    yield "gap", change(turn, routing=done.routing[1:], routing_start=done.routing_start + 1), RoutingRecordError
    yield "shifted record", change(turn, routing_start=done.routing_start + 1), RoutingRecordError
    yield "other layers", change(turn, routing=np.concatenate([done.routing] * 2, axis=1)), RoutingRecordError
    yield "flat record", change(turn, routing=done.routing.reshape(len(done.routing), -1)), RoutingRecordError
    repeated = done.routing.copy()
    repeated[-1, -1, 1] = repeated[-1, -1, 0]
    yield "repeated expert", change(turn, routing=repeated), RoutingRecordError
    yield "no log-probability", change(turn, logprobs=done.logprobs[:-1]), StitchingError
    yield "non-finite log-probability", change(turn, logprobs=np.full_like(done.logprobs, np.nan)), StitchingError
    yield "other temperature", dataclasses.replace(turn, temperature=0.5), StitchingError
    yield "turn left out", dataclasses.replace(turn, index=turn.index + 1), StitchingError


KINDS = [name for name, _, _ in corruptions(make_turns(PLAN, (2, 2))[1])]


@given(plans, st.sampled_from(KINDS), st.sampled_from([(2, 2), (1, 3)]), st.integers(0, 9))
@promise
def test_a_refused_turn_leaves_the_stream_as_it_was(plan, kind, layout, seed):
    turns = make_turns([*(dataclasses.replace(step, evicted=0) for step in plan), Plan(2, 2, False, 0, 0)], layout, seed)
    *before, last = turns
    bad, error = next((bad, error) for name, bad, error in corruptions(last) if name == kind)
    stitcher = worker_for(turns)
    for turn in before:
        stitcher.add(turn)
    unharmed = streams(stitcher.finish())
    with pytest.raises(error):
        stitcher.add(bad)
    assert streams(stitcher.finish()) == unharmed
    stitcher.add(last)
    assert streams(stitcher.finish()) == reference(turns)


@given(plans, st.integers(0, 9))
@promise
def test_an_unannounced_restart_is_refused(plan, seed):
    assume(any(step.restart for step in plan[1:]))
    turns = [dataclasses.replace(turn, restarted=False) for turn in make_turns(plan, (2, 2), seed)]
    with pytest.raises(TokenFidelityError):
        stitch(turns)


def test_the_error_names_the_first_difference():
    first, second, _ = make_turns(PLAN, (2, 2))
    prompt = second.prompt_ids.copy()
    prompt[5] = 999
    with pytest.raises(TokenFidelityError, match=r"turn 1: .* differ at index 5: .*999.*`restarted`"):
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
    prompt = np.concatenate([history[:shared], np.full(12 - shared, 1)])
    done = dataclasses.replace(
        first.completion, routing=rows(np.random.default_rng(0), 12 + 3 - 1 - cached, (2, 2)), routing_start=cached
    )
    stitcher = worker_for([first])
    stitcher.add(first)
    before = streams(stitcher.finish())
    with pytest.raises(RoutingRecordError, match="no earlier turn"):
        stitcher.add(Turn(1, prompt, done, first.temperature, restarted=True))
    assert streams(stitcher.finish()) == before


def test_an_announced_restart_that_changes_nothing_is_exact():
    first, second, _ = make_turns(PLAN, (2, 2))
    (trajectory,) = stitch([first, dataclasses.replace(second, restarted=True)])
    assert trajectory.boundaries == (Boundary.EXACT,)


def test_trajectories_are_read_only_and_stay_what_they_were():
    first, second, third = make_turns(PLAN, (2, 2))
    stitcher = worker_for([first])
    stitcher.add(first)
    early = stitcher.finish()
    seen = streams(early)
    stitcher.add(second)
    stitcher.add(third)
    assert streams(early) == seen
    for array in (early[0].token_ids, early[0].loss_mask, early[0].logprobs, early[0].routed_experts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_versions_are_spans():
    plan = [Plan(1, 2, False, 0, version) for version in (5, 5, 6, 6, 7)]
    (trajectory,) = stitch(make_turns(plan, (1, 2)))
    assert [span.version for span in trajectory.versions] == [5, 6, 7]
    assert [(span.start, span.stop) for span in trajectory.versions] == [(2, 7), (8, 13), (14, 16)]


def test_an_aborted_turn_without_ids_keeps_the_stream_aligned():
    first, second, _ = make_turns(PLAN, (2, 2))
    empty = change(
        second, ids=second.completion.ids[:0], logprobs=second.completion.logprobs[:0], routing=second.completion.routing[:-2]
    )
    (trajectory,) = stitch([first, empty])
    assert trajectory.token_ids.tolist() == second.prompt_ids.tolist()
    assert len(trajectory.routed_experts) == len(second.prompt_ids) - 1


def test_the_stitcher_is_a_registered_component():
    assert Component.registry["TokenStitcher"] is TokenStitcher

"""Rows of trajectories that are told by where their turns captured them."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from random_turns import Plan, layouts, make_turns, plans, rows, stitch

from t1x.engine.protocol import Completion
from t1x.trajectory.records import Boundary, Trajectory, Turn
from t1x.trajectory.storage_copies import Copies, find_copies

PLAIN = Plan(glue=2, sampled=3, restart=False, evicted=0.0, version=0)


def captured(turns) -> np.ndarray:
    return np.concatenate([turn.completion.routing for turn in turns])


@promise
@given(plan=plans, layout=layouts.filter(lambda layout: layout[0] > 0), seed=st.integers(0, 1000))
def test_all_rows_of_a_trial_are_its_turns(plan, layout, seed: int) -> None:
    turns = make_turns(plan, layout, seed)
    streams = stitch(turns)
    for stream, copies in zip(streams, find_copies(turns, streams), strict=True):
        assert not len(copies.rest)
        assert np.array_equal(copies.rows(captured(turns), len(stream.routed_experts)), stream.routed_experts)
        assert len(copies.parts) <= len(plan), "a part a turn is the most"


@promise
@given(plan=plans, layout=layouts, seed=st.integers(0, 1000), data=st.data())
def test_rows_that_no_turn_captured_are_kept(plan, layout, seed: int, data: st.DataObject) -> None:
    """As a stitcher of one's own may make them: some rows are others, some streams are longer, some have lost their loss."""
    turns = make_turns(plan, layout, seed)
    streams = []
    for stream in stitch(turns):
        changed = stream.routed_experts.copy()
        new = data.draw(st.lists(st.integers(0, len(changed) - 1), max_size=3)) if len(changed) else []
        changed[new] += 100
        mask = stream.loss_mask & data.draw(st.booleans())
        streams.append(replace(stream, routed_experts=changed, loss_mask=mask))
    extra = data.draw(st.integers(0, 2))
    streams += streams[:extra]
    for stream, copies in zip(streams, find_copies(turns, streams), strict=True):
        assert np.array_equal(copies.rows(captured(turns), len(stream.routed_experts)), stream.routed_experts)


@promise
@given(plan=plans, kinds=st.integers(1, 2), data=st.data())
def test_a_row_is_taken_once_where_all_look_alike(plan, kinds: int, data: st.DataObject) -> None:
    """Of streams that were stretched, as encoding anew makes them; parts that overlap are refused by `Copies.rows`."""
    turns = []
    for turn in make_turns(plan, (1, 1)):
        alike = turn.completion.routing % kinds
        turns.append(replace(turn, completion=replace(turn.completion, routing=alike)))
    streams = []
    for stream in stitch(make_turns(plan, (1, 1))):
        n = len(stream.routed_experts)
        times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
        mask = np.append(stream.loss_mask[0], np.repeat(stream.loss_mask[1:], times))
        streams.append(replace(stream, loss_mask=mask, routed_experts=np.repeat(stream.routed_experts % kinds, times, axis=0)))
    for stream, copies in zip(streams, find_copies(turns, streams), strict=True):
        assert np.array_equal(copies.rows(captured(turns), len(stream.routed_experts)), stream.routed_experts)


def test_one_turn_in_a_row_is_one_part() -> None:
    """Where the cache kept all, whatever the number of turns."""
    turns = make_turns([PLAIN] * 5, (2, 2))
    (copies,) = find_copies(turns, stitch(turns))
    assert copies.parts.tolist() == [[0, len(captured(turns))]]


def test_a_substituted_row_is_the_only_one_that_is_kept() -> None:
    turns = make_turns([PLAIN] * 3, (2, 2))
    (stream,) = stitch(turns)
    at = len(turns[0].prompt_ids) + len(turns[0].completion.ids) - 1
    experts = stream.routed_experts.copy()
    experts[at] = experts[at - 1]
    (copies,) = find_copies(turns, [replace(stream, routed_experts=experts, substituted_rows=(at,))])
    n = len(experts)
    assert copies.parts.tolist() == [[0, at], [-1, 1], [at + 1, n - at - 1]]
    assert np.array_equal(copies.rest, experts[at : at + 1])


def test_rows_of_another_kind_are_kept_as_they_are() -> None:
    turns = make_turns([PLAIN] * 2, (2, 2))
    (stream,) = stitch(turns)
    own = stream.routed_experts
    for other in (own.astype(np.uint16), own[:, :1], own[:, :0, :0]):
        (copies,) = find_copies(turns, [replace(stream, routed_experts=other)])
        assert copies.rest.dtype == other.dtype
        assert np.array_equal(copies.rest, other)
    mixed = [turns[0], replace(turns[1], completion=replace(turns[1].completion, routing=own[:1].astype(np.uint16)))]
    (copies,) = find_copies(mixed, [stream])
    assert np.array_equal(copies.rest, own), "no source has rows of two kinds"


def test_parts_that_do_not_fit_are_refused() -> None:
    source = np.zeros((4, 1, 1), np.uint8)
    huge = 2**62
    for parts, rest, due, said in (
        ([(3, 2)], 0, 2, "aren't in order among 4 rows"),
        ([(huge, 2)], 0, 2, "aren't in order among 4 rows"),
        ([(2**63 - 1, 2)], 0, 2, "aren't in order among 4 rows"),
        ([(2, 1), (1, 1)], 0, 2, "aren't in order"),
        ([(0, 2), (1, 2)], 0, 4, "aren't in order"),
        ([(-1, 2)], 1, 2, "1 rows belong to parts of 2"),
        ([(0, 1)], 1, 1, "1 rows belong to parts of 0"),
        ([(0, 1)], 0, 2, "don't make up 2 rows"),
        ([(0, 2)], 0, 1, "don't make up 1 rows"),
        ([(0, 1), (1, 0)], 0, 1, "don't make up 1 rows"),
        ([(0, 2), (2, -1)], 0, 1, "don't make up 1 rows"),
        ([(0, huge), (0, huge), (0, huge), (0, huge)], 0, 0, "don't make up 0 rows"),
        ([], 0, 1, "don't make up 1 rows"),
    ):
        with pytest.raises(ValueError, match=said):
            Copies(np.array(parts, np.int64).reshape(-1, 2), np.zeros((rest, 1, 1), np.uint8)).rows(source, due)


def test_what_it_costs_grows_with_the_rows_and_no_faster() -> None:
    """Eight times as many restarts, and eight times as many turns of an engine without a cache (whose captures grow by the square,
    but aren't looked at again). Whatever grows by the square would take 64 times as long."""
    for make in (_restarts, _uncached):
        (few, few_streams), (many, many_streams) = make(40), make(320)
        _seconds(few, few_streams)
        assert _seconds(many, many_streams) < 30 * max(_seconds(few, few_streams), 1e-3)


def _seconds(turns, streams) -> float:
    taken = []
    for _ in range(3):
        began = time.process_time()
        assert not any(len(copies.rest) for copies in find_copies(turns, streams))
        taken.append(time.process_time() - began)
    return min(taken)


def _restarts(count: int):
    """Trajectories of 100 tokens; all rows are distinct from those before."""
    random = np.random.default_rng(0)
    turns = [_turn(index, 60, 40, 0, rows(random, 99, (2, 2))) for index in range(count)]
    return turns, [_stream(turn, (Boundary.RESTART,) * (index > 0)) for index, turn in enumerate(turns)]


def _uncached(count: int):
    """One trajectory of 20 tokens a turn, of which every turn captures all rows again."""
    everything = rows(np.random.default_rng(0), 20 * count, (2, 2))
    turns = [_turn(index, 20 * index + 10, 10, 0, everything[: 20 * index + 19]) for index in range(count)]
    last = _stream(turns[-1], (Boundary.EXACT,) * (count - 1))
    return turns, [replace(last, loss_mask=np.arange(20 * count) % 20 >= 10)]


def _turn(index: int, prompt: int, sampled: int, start: int, routing: np.ndarray) -> Turn:
    done = Completion(np.zeros(sampled, np.int32), np.zeros(sampled, np.float32), routing, start, "stop", 0)
    return Turn(index, np.zeros(prompt, np.int32), done, 1.0)


def _stream(turn: Turn, boundaries: tuple[Boundary, ...]) -> Trajectory:
    done, m = turn.completion, len(turn.prompt_ids)
    n = m + len(done.ids)
    return Trajectory(
        np.zeros(n, np.int32), np.arange(n) >= m, np.zeros(n, np.float32), done.routing, (), boundaries, turn.temperature
    )

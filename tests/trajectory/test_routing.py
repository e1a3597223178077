import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.trajectory.records import Turn
from t1x.trajectory.routing import BLOCK, UNLIKELY, check_record, padding_rows, repeated_expert, substitute
from t1x.trajectory.stitcher import RoutingRecordError

LAYOUT = RoutingLayout(layers=3, k=2, experts=6)


def distinct(rng, n, layout):
    """[n, layers, k] of distinct experts."""
    every = np.tile(np.arange(layout.experts), (n, layout.layers, 1))
    return rng.permuted(every, axis=2)[..., : layout.k].astype(layout.dtype)


def captured(layout=LAYOUT, prompt=5, sampled=4, start=0, cached=0, seed=0):
    rng = np.random.default_rng(seed)
    rows = distinct(rng, prompt + sampled - 1 - start, layout)
    ids, logprobs = np.arange(sampled, dtype=np.int32), np.zeros(sampled, np.float32)
    return Turn(7, np.arange(prompt, dtype=np.int32), Completion(ids, logprobs, rows, start, "stop", 0, cached), 1.0)


def with_routing(turn, routing, **values):
    return dataclasses.replace(turn, completion=dataclasses.replace(turn.completion, routing=routing, **values))


layouts = st.integers(1, 9).flatmap(
    lambda k: st.builds(RoutingLayout, st.integers(1, 4), st.just(k), st.sampled_from([k, k + 1, 16, 255, 256, 257, 512]))
)


@given(layouts, st.integers(1, 6), st.integers(0, 5), st.integers(0, 9), st.integers(0, 9))
@promise
def test_a_record_of_distinct_experts_passes(layout, prompt, sampled, start, seed):
    check_record(captured(layout, prompt, sampled, min(start, prompt - 1), seed=seed), layout)


@given(layouts.filter(lambda layout: layout.k > 1), st.integers(1, 40), st.data())
@promise
def test_the_first_repeated_expert_is_found_wherever_it_stands(layout, n, data):
    rows = distinct(np.random.default_rng(n), n, layout)
    assert repeated_expert(rows) is None
    row, layer = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, layout.layers - 1))
    here, there = data.draw(st.permutations(range(layout.k)))[:2]
    rows[row, layer, here] = rows[row, layer, there]
    assert repeated_expert(rows) == (row, layer)


def test_rows_beyond_one_block_are_looked_at():
    layout = RoutingLayout(layers=5, k=7, experts=256)
    rows = distinct(np.random.default_rng(0), 2 * BLOCK // 35 + 3, layout)
    assert rows.size > 2 * BLOCK
    assert repeated_expert(rows) is None
    for row in (0, BLOCK // 35, len(rows) - 1):
        wrong = rows.copy()
        wrong[row, 4, 0] = wrong[row, 4, 6]
        assert repeated_expert(wrong) == (row, 4)


def corrupted():
    turn = captured()
    routing = turn.completion.routing
    yield "absent", with_routing(turn, routing[:0]), "turn 7: its routing is absent: rows from position 0 to 0"
    yield "short", with_routing(turn, routing[:-1]), "is short: rows from position 0 to 7, where prompt and completion have 8"
    yield "long", with_routing(turn, np.concatenate([routing, routing[:1]])), "is long: rows from position 0 to 9"
    yield "shifted", with_routing(turn, routing, routing_start=1), "is long: rows from position 1 to 9"
    yield "before the first position", with_routing(turn, routing, routing_start=-1), "rows from position -1 to 7"
    yield "no layers", with_routing(turn, np.zeros((8, 0, 0), np.uint8)), r"\[0, 0\] where \[3, 2\] is due; let the engine return"
    yield "other layers", with_routing(turn, routing[:, :2]), r"\[2, 2\] where \[3, 2\] is due"
    yield "other k", with_routing(turn, routing[..., :1]), r"\[3, 1\] where \[3, 2\] is due"
    yield "flat", with_routing(turn, routing.reshape(8, 6)), r"shape \(8, 6\), not \[rows, layers, k\]"
    yield "other type", with_routing(turn, routing.astype(np.int32)), "type int32 where uint8 is due"
    for name, experts, message in (
        ("out of range", [0, 6], r"position 5, layer 1: \[0, 6\] of 6 experts"),
        ("repeated", [4, 4], r"position 5, layer 1: experts \[4, 4\] aren't distinct$"),
        ("all zeros", [0, 0], "layer 1: experts .* aren't distinct; nothing was recorded for that layer"),
    ):
        wrong = routing.copy()
        wrong[5, 1] = experts
        yield name, with_routing(turn, wrong), message


@pytest.mark.parametrize(("turn", "message"), [pytest.param(*rest, id=name) for name, *rest in corrupted()])
def test_a_corrupted_record_is_refused_and_the_place_named(turn, message):
    with pytest.raises(RoutingRecordError, match=message):
        check_record(turn, LAYOUT)


def test_positions_are_those_of_prompt_and_completion():
    turn = captured(start=4)
    turn.completion.routing[2, 0] = 3
    with pytest.raises(RoutingRecordError, match="position 6, layer 0"):
        check_record(turn, LAYOUT)


def test_without_a_layout_there_are_rows_without_experts():
    turn = captured()
    none = np.zeros((8, 0, 0), np.uint8)
    check_record(with_routing(turn, none), None)
    with pytest.raises(RoutingRecordError, match="is short"):
        check_record(with_routing(turn, none[1:]), None)
    with pytest.raises(RoutingRecordError, match=r"\[3, 2\] where \[0, 0\] is due"):
        check_record(turn, None)


def test_a_layer_of_expert_0_alone_is_refused_where_k_is_1_and_rows_are_many():
    layout = RoutingLayout(layers=2, k=1, experts=4)
    for rows in (UNLIKELY - 1, UNLIKELY):
        turn = captured(layout, prompt=rows, sampled=1)
        turn.completion.routing[:, 1] = 0
        if rows < UNLIKELY:
            check_record(turn, layout)
        else:
            with pytest.raises(RoutingRecordError, match=r"layer 1: nothing but experts \[0\]"):
                check_record(turn, layout)


@pytest.mark.parametrize("k", [1, 2])
def test_a_choice_that_never_changes_is_refused_where_rows_are_many(k):
    layout = RoutingLayout(layers=3, k=k, experts=5)

    def check(rows=UNLIKELY, layout=layout, **layers):
        turn = captured(layout, prompt=rows, sampled=1)
        for layer, experts in layers.items():
            turn.completion.routing[:, int(layer[1:])] = experts[:k]
        check_record(turn, layout)

    zeros, other = [0, 1], [3, 2]
    check(l1=other)
    check(rows=UNLIKELY - 1, l0=zeros, l1=zeros, l2=zeros)
    with pytest.raises(RoutingRecordError, match=rf"positions 0 to 63, layer 1: nothing but experts \{zeros[:k]}"[:-1]):
        check(l1=zeros)
    with pytest.raises(RoutingRecordError, match=rf"layer 0, as in every other: nothing but experts \{other[:k]}"[:-1]):
        check(l0=other, l1=other, l2=other)
    with pytest.raises(RoutingRecordError, match="as in every other"):
        check(rows=3 * UNLIKELY, l0=other, l1=[2, 4], l2=[4, 0])
    check(layout=RoutingLayout(layers=3, k=k, experts=k), l0=zeros, l1=zeros, l2=zeros)


def test_a_choice_that_changes_in_the_last_row_passes():
    layout = RoutingLayout(layers=2, k=2, experts=5)
    turn = captured(layout, prompt=3 * UNLIKELY, sampled=1)
    turn.completion.routing[:-1] = [0, 1]
    turn.completion.routing[-1] = [1, 0]
    check_record(turn, layout)


def test_rows_that_a_cache_served_equal_the_earlier_ones():
    first = captured(prompt=5, sampled=3)
    earlier = first.completion.routing
    turn = captured(prompt=9, sampled=2, cached=6, seed=1)
    turn.completion.routing[:6] = earlier[:6]
    check_record(turn, LAYOUT, earlier)
    turn.completion.routing[4, 2] = turn.completion.routing[4, 2, ::-1]
    with pytest.raises(RoutingRecordError, match="turn 7: position 4, layer 2: the cache served"):
        check_record(turn, LAYOUT, earlier)
    check_record(with_routing(turn, turn.completion.routing, cached_tokens=4), LAYOUT, earlier)  # computed again: may differ
    turn.completion.routing[5, 0] = 3
    with pytest.raises(RoutingRecordError, match="position 5, layer 0"):  # computed again: still a record
        check_record(with_routing(turn, turn.completion.routing, cached_tokens=4), LAYOUT, earlier)


def test_served_rows_that_no_earlier_turn_captured_are_checked_themselves():
    turn = captured(prompt=9, sampled=2, cached=6)
    check_record(turn, LAYOUT)
    turn.completion.routing[2, 0] = 1
    for earlier in (None, turn.completion.routing[:2].copy()):
        with pytest.raises(RoutingRecordError, match="position 2, layer 0"):
            check_record(turn, LAYOUT, earlier)


def test_rows_known_are_not_looked_at_twice():
    """A wrong row that equals the earlier one was refused, or not, when it came."""
    turn = captured(prompt=9, sampled=2, cached=6)
    turn.completion.routing[2, 0] = 1
    check_record(turn, LAYOUT, turn.completion.routing[:6].copy())


def test_a_row_is_put_in_only_where_no_loss_token_depends_on_it():
    rows = distinct(np.random.default_rng(0), 5, LAYOUT)
    for n in (1, 2, 5):
        assert (substitute(rows[:n], predicts_loss=False) == rows[n - 1]).all()
        assert substitute(rows[:n], predicts_loss=False).shape == (1, *rows.shape[1:])
        with pytest.raises(RoutingRecordError, match=f"position {n} .* predicts a loss token"):
            substitute(rows[:n], predicts_loss=True)
    with pytest.raises(RoutingRecordError, match=r"position 0 .* no row stands before it"):
        substitute(rows[:0], predicts_loss=False)


@given(layouts, st.integers(0, 1000), st.integers(0, 60))
@promise
def test_padding_rows_hold_distinct_experts_and_overload_none(layout, first, n):
    rows = padding_rows(layout, first, n)
    assert rows.shape == (n, layout.layers, layout.k)
    assert rows.dtype == layout.dtype
    for row in rows.reshape(-1, layout.k).tolist():
        assert len(set(row)) == layout.k
        assert all(0 <= expert < layout.experts for expert in row)
    for layer in range(layout.layers if n else 0):
        loads = np.bincount(rows[:, layer].astype(int).ravel(), minlength=layout.experts)
        assert loads.max() - loads.min() <= 1


def test_padding_goes_on_where_it_stands():
    whole = padding_rows(LAYOUT, 0, 9)
    assert (np.concatenate([padding_rows(LAYOUT, 0, 4), padding_rows(LAYOUT, 4, 5)]) == whole).all()

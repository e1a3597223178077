"""What a stream says of its turns as a whole, rows that it says are substituted, and turns that sampled nothing."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from random_turns import layouts, make_turns, plans, stitch
from toy_text import LAYOUT, TOY, turn

from t1x.trajectory.audit import audit
from t1x.trajectory.audit_finding import Kind
from t1x.trajectory.records import Boundary
from t1x.trajectory.stitcher import TokenStitcher

EXACT, EDGE, RETOKENIZED, RESTART = Boundary


def one(turns):
    (stream,) = TokenStitcher().stitch("a trial", turns, TOY, LAYOUT)
    assert audit(turns, [stream]).violations == 0
    return stream


def edited(stream, name, at, value):
    array = getattr(stream, name).copy()
    array[at] = value
    return dataclasses.replace(stream, **{name: array})


def without(stream, at):
    """One position of context less, in all streams."""
    cut = {name: np.delete(getattr(stream, name), at, 0) for name in ("token_ids", "loss_mask", "logprobs", "routed_experts")}
    spans = (
        dataclasses.replace(span, start=span.start - (at < span.start), stop=span.stop - (at < span.stop))
        for span in stream.versions
    )
    return dataclasses.replace(stream, **cut, versions=tuple(spans))


THREE = [
    turn(0, "<u> a <a>", "ls <e>"),
    turn(1, "<u> a <a> ls <e> <t> b <a>", "la", start=4, cached=4),
    turn(2, "<u> a <a> ls <e> <t> b <a> la <t> <a>", "a <e>", start=8, cached=8),
]
"""Exact throughout."""
EDGED = [turn(0, "<u> a <a>", "ls <e>"), turn(1, "<u> a <a> ls <t> b <a>", "a <e>", start=4, cached=4)]
"""The template dropped <e>: position 4 of the stream, whose row repeats the one before."""


@given(plans, layouts, st.integers(0, 9), st.data())
@promise
def test_a_label_that_is_not_what_the_turns_are_is_one_violation(plan, layout, seed, data):
    """Whichever is changed, unless there is no turn to say it of."""
    turns = make_turns(plan, layout, seed)
    streams = stitch(turns)
    index = data.draw(st.integers(0, len(streams) - 1))
    stream = streams[index]
    changes = {"temperature": 2.0 * stream.temperature}
    if stream.boundaries:
        at = data.draw(st.integers(0, len(stream.boundaries) - 1))
        other = data.draw(st.sampled_from([case for case in Boundary if case is not stream.boundaries[at]]))
        changes["boundaries"] = (*stream.boundaries[:at], other, *stream.boundaries[at + 1 :])
    name = data.draw(st.sampled_from(sorted(changes)))
    streams[index] = dataclasses.replace(stream, **{name: changes[name]})
    found = audit(turns, streams)
    first = sum(len(each.boundaries) for each in streams[:index]) + (index > 0)
    of_it = 1 + len(stream.boundaries) - (index > 0)
    assert found.violations == found.wrong_labels == (of_it if name == "temperature" else 1)
    assert all(first <= finding.turn < first + of_it for finding in found.findings)
    assert {finding.kind for finding in found.findings} == {Kind.TEMPERATURE if name == "temperature" else Kind.BOUNDARY}


@pytest.mark.parametrize(
    ("turns", "label", "said"),
    [
        (EDGED, EXACT, "exact, but its prompt doesn't begin with all of turn 0"),
        (EDGED, RESTART, "restart, but the turn goes on with its stream"),
        (THREE[:2], EDGE, "edge, but its prompt begins with all of turn 0"),
        (THREE[:2], RETOKENIZED, "retokenized, but its prompt begins with all of turn 0"),
    ],
)
def test_what_is_wrong_with_a_boundary_is_said(turns, label, said):
    wrong = audit(turns, [dataclasses.replace(one(turns), boundaries=(label,))])
    assert wrong.wrong_labels == 1
    assert (1, said) in [(finding.turn, finding.detail) for finding in wrong.findings if finding.kind is Kind.BOUNDARY]
    assert wrong.metrics()["fidelity/wrong_labels"] == 1


def test_a_stream_behind_another_begins_with_a_restart():
    turns = [EDGED[0], turn(1, "<u> b <a>", "a <e>", restarted=True)]
    first, second = TokenStitcher().stitch("a trial", turns, TOY, LAYOUT)
    assert audit(turns, [first, second]).violations == 0
    found = audit(turns, [first, dataclasses.replace(second, boundaries=(EDGE,))])
    assert found.findings[0].detail == "edge, but the turn begins a stream"


@pytest.mark.parametrize("silent", [False, True])
def test_there_is_a_boundary_for_every_turn_but_the_first(silent):
    last = turn(2, "<u> a <a> ls <e> <t> b <a> la <t> <a>", "", start=8, cached=8)
    turns = [*THREE[:2], last] if silent else THREE
    stream = one(turns)
    more = audit(turns, [dataclasses.replace(stream, boundaries=(*stream.boundaries, EXACT))])
    assert (more.violations, more.findings[0].detail) == (1, "1 boundaries more than one a turn after the first")
    fewer = audit(turns, [dataclasses.replace(stream, boundaries=stream.boundaries[:-1])])
    assert fewer.violations > 0
    if silent:
        assert "no stream has a boundary for this turn" in {finding.detail for finding in fewer.findings}
    assert audit([], [stream]).violations > 0


def test_a_temperature_of_a_turn_that_sampled_nothing_counts_too():
    turns = [*THREE[:2], turn(2, "<u> a <a> ls <e> <t> b <a> la <t> <a>", "", start=8, cached=8)]
    found = audit([*turns[:2], dataclasses.replace(turns[2], temperature=0.5)], [one(turns)])
    assert (found.violations, found.wrong_labels) == (1, 1)
    assert found.findings[0].detail == "the stream has temperature 1, the turn was sampled at 0.5"


def test_a_substituted_row_is_named_once_and_is_the_last_of_a_turn_that_is_not_continued_exactly():
    stream = one(EDGED)
    assert stream.substituted_rows == (4,)
    found = audit(EDGED, [dataclasses.replace(stream, substituted_rows=(4,) * 1000)])
    assert (found.misplaced_rows, found.findings[0].detail) == (1, "a substituted row is named 1000 times")
    for turns, row in ((EDGED, 6), (EDGED, 1), (THREE, 4), (THREE, 8)):
        stream = one(turns)
        repeated = edited(stream, "routed_experts", row, stream.routed_experts[row - 1])
        declared = dataclasses.replace(repeated, substituted_rows=(*stream.substituted_rows, row))
        found = audit(turns, [declared])
        assert (found.misplaced_rows, found.findings[0].position) == (1, row)
        said = "predicts a loss token" if stream.loss_mask[row + 1] else "isn't the last of a turn that isn't continued exactly"
        assert found.findings[0].detail == f"a substituted row {said}"


SILENT = [
    turn(0, "<u> a <a> <think>", "ls <e>"),
    turn(1, "<u> a <a> <think> ls <t> b <a> <think>", "", start=5, cached=5),
    turn(2, "<u> a <a> <think> ls <t> b <t> c <a> <think>", "a <e>", start=7, cached=7),
]
"""Two edges: <e> is missing from turn 1, <a> <think> that ends turn 1 from turn 2. The stream has all of them."""


def test_where_a_turn_that_sampled_nothing_ends_is_known_from_what_the_next_one_adds():
    stream = one(SILENT)
    assert (stream.boundaries, len(stream.token_ids)) == ((EDGE, EDGE), 16)
    context = np.flatnonzero(~stream.loss_mask).tolist()
    for at in context:
        assert audit(SILENT, [without(stream, at)]).violations > 0, at
        if at in stream.substituted_rows or stream.loss_mask[at + 1]:
            continue
        for name, value in (("routed_experts", 999), ("token_ids", 7)):
            found = audit(SILENT, [edited(stream, name, at, value)])
            assert at in {finding.position for finding in found.findings if finding.kind is Kind.ROW}, (name, at)


def test_a_row_that_a_cache_served_to_a_turn_of_unknown_place_is_compared_too():
    """Nobody can tell where turn 1 ends: turn 2 is said to have other ids for it, and wasn't rendered."""
    turns = [
        turn(0, "<u> a <a>", "l s <e>", text=True),
        turn(1, "<u> a <a> ls <e> <t> b <a>", "", answered=(3, 4), start=3, cached=3),
        turn(2, "<u> a <a> ls <e> <t> b <a> <e> <t> <a>", "a", start=7, cached=7),
    ]
    stream = dataclasses.replace(one(turns), boundaries=(RETOKENIZED, RETOKENIZED))
    served = dataclasses.replace(turns[1].completion, routing=np.full((7, 1, 1), 5, np.uint16), routing_start=0)
    found = audit([turns[0], dataclasses.replace(turns[1], completion=served), turns[2]], [stream])
    assert (found.cached_differences, found.findings[0].kind) == (3, Kind.CACHED)


def test_context_before_what_the_engine_consumed_is_of_no_capture():
    stream = one(EDGED[:1])
    twice = dataclasses.replace(
        stream,
        **{
            name: np.concatenate([getattr(stream, name)[:1], getattr(stream, name)])
            for name in ("token_ids", "loss_mask", "logprobs", "routed_experts")
        },
        versions=tuple(dataclasses.replace(span, start=span.start + 1, stop=span.stop + 1) for span in stream.versions),
    )
    assert audit(EDGED[:1], [twice]).misplaced_rows == 1

"""The rules of stitching one by one, each from what the turns captured."""

import sys
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from small_chats import STOP, Style, chats, small_chat
from streams import build, plain, stitch
from worlds import Step, happen, layouts, steps, worlds

from t1x.model.routing_layout import RoutingLayout
from t1x.trajectory.audit import audit
from t1x.trajectory.records import Boundary
from t1x.trajectory.stitcher import ExactStitcher, TokenFidelityError


def chunks_of(got):
    """Each trajectory with its turns: a restart begins the next one."""
    first = 0
    for index, trajectory in enumerate(got.trajectories):
        turns = got.taken[first : first + len(trajectory.boundaries) + (index == 0)]
        first += len(turns)
        yield trajectory, turns


@given(worlds)
@promise
def test_loss_positions_are_exactly_what_was_sampled(world):
    """Eq. 5: ids, log-probabilities and versions in the order of the turns, and no log-probability elsewhere."""
    for stream, turns in chunks_of(stitch(world)):
        done = [turn.completion for turn in turns]
        mask = stream.loss_mask
        assert stream.token_ids[mask].tolist() == [id_ for one in done for id_ in one.ids.tolist()]
        assert stream.logprobs[mask].tolist() == [value for one in done for value in one.logprobs.tolist()]
        assert not stream.logprobs[~mask].any()
        spans = [span for span in stream.versions if mask[span.start : span.stop].any()]
        of = [next(span.version for span in spans if span.start <= j < span.stop) for j in np.flatnonzero(mask)]
        assert of == [one.version for one in done for _ in one.ids]


@given(worlds)
@promise
def test_the_auditor_finds_no_violation(world):
    """Its code is independent of the stitcher's. Every count is checked here again."""
    got = stitch(world)
    found = audit(got.taken, got.trajectories)
    assert found.violations == 0, found.findings
    assert found.own_turn_fidelity == 1
    assert found.loss_tokens == sum(len(turn.completion.ids) for turn in got.taken)
    assert found.boundaries == Counter(case for stream in got.trajectories for case in stream.boundaries)
    assert sum(found.boundaries.values()) == max(0, len(got.taken) - 1)
    assert found.placeholder_tokens == sum(turn.placeholder_tokens for turn in got.taken)
    assert found.substituted_rows == sum(len(stream.substituted_rows) for stream in got.trajectories)
    other = 0
    for stream, turns in chunks_of(got):
        loss = np.flatnonzero(stream.loss_mask).tolist()
        for turn in turns:
            for at in range(len(turn.completion.ids)):
                prefix = [*turn.prompt_ids.tolist(), *turn.completion.ids[:at].tolist()]
                other += stream.token_ids[: loss.pop(0)].tolist() != prefix
    assert found.context_differences == other


@given(worlds)
@promise
def test_rows_are_aligned_and_those_of_loss_positions_are_their_own_turns(world):
    """Invariants 3, 4 and 6: N - 1 rows, row j predicts j + 1, and the turn that sampled j + 1 captured it."""
    for stream, turns in chunks_of(stitch(world)):
        assert len(stream.routed_experts) == len(stream.token_ids) - 1 == len(stream.loss_mask) - 1 == len(stream.logprobs) - 1
        due = []
        for turn in turns:
            done = turn.completion
            before = len(turn.prompt_ids) - 1 - done.routing_start
            due += done.routing[before : before + len(done.ids)].tolist()
        assert stream.routed_experts[np.flatnonzero(stream.loss_mask) - 1].tolist() == due


@given(worlds)
@promise
def test_a_row_was_captured_for_its_own_id_or_put_in_where_no_loss_token_follows(world):
    """Behind a repaired boundary too. Eq. 14; the report's placeholder set lies outside of the loss."""
    got, captured, rows = stitch(world), defaultdict(list), []
    for turn in got.taken:
        rows = rows[: turn.completion.routing_start] + turn.completion.routing.tolist()
        for id_, row in zip([*turn.prompt_ids.tolist(), *turn.completion.ids.tolist()], rows, strict=False):
            captured[id_].append(row)
    for stream in got.trajectories:
        streamed = stream.routed_experts.tolist()
        for j, row in enumerate(streamed):
            if j in stream.substituted_rows:
                assert j > 0
                assert not stream.loss_mask[j + 1]
                assert row == streamed[j - 1]
            else:
                assert row in captured[int(stream.token_ids[j])]


@given(worlds)
@promise
def test_no_stop_token_stands_twice_in_a_row(world):
    """Templates put one behind an answer, and the policy has sampled it already."""
    if world.turns[0].rendered is None:
        return
    for stream in stitch(world).trajectories:
        stops = stream.token_ids == STOP
        assert not (stops[1:] & stops[:-1]).any()


@given(worlds)
@promise
def test_what_was_appended_never_changes(world):
    got = stitch(world)
    last = plain(got.trajectories)
    for earlier in got.snapshots:
        for before, after in zip(plain(earlier), last, strict=False):
            for name in ("ids", "mask", "logprobs", "versions", "rows", "boundaries", "substituted"):
                assert after[name][: len(before[name])] == before[name]


@given(worlds)
@promise
def test_every_restart_opens_a_chunk_of_context(world):
    got = stitch(world)
    cases = Counter(case for stream in got.trajectories for case in stream.boundaries)
    assert len(got.trajectories) == cases[Boundary.RESTART] + bool(got.taken)
    for index, (stream, turns) in enumerate(chunks_of(got)):
        assert (stream.boundaries[:1] == (Boundary.RESTART,)) == (index > 0)
        assert Boundary.RESTART not in stream.boundaries[1:]
        if index:
            assert turns[0].restarted
        prompt = turns[0].prompt_ids
        assert stream.token_ids[: len(prompt)].tolist() == prompt.tolist()
        assert not stream.loss_mask[: len(prompt)].any()


@given(chats, st.lists(steps, min_size=1, max_size=6), layouts, st.integers(0, 2**32))
@promise
def test_ids_as_the_source_of_truth_make_every_boundary_exact(chat, plan, layout, seed):
    world = happen(chat, [replace(step, move="go on") for step in plan], layout, seed, by_text=False)
    got = stitch(world)
    assert got.error is None
    (stream,) = got.trajectories
    assert set(stream.boundaries) <= {Boundary.EXACT}
    assert stream.substituted_rows == ()
    found = audit(got.taken, got.trajectories)
    assert found.context_differences == found.own_turn_violations == 0
    assert found.context_fidelity == 1


@given(worlds)
@promise
def test_the_exact_stitcher_takes_exact_turns_and_no_others(world):
    got = stitch(world)
    exact = 1 + next((i for i, case in enumerate(_cases(got)) if case != Boundary.EXACT), len(_cases(got)))
    stitcher = ExactStitcher().build(world.chat.tokenizer, world.layout)
    for turn in got.taken[:exact]:
        stitcher.add(turn)
    before = plain(stitcher.finish())
    assert before == (plain(got.snapshots[exact - 1]) if got.taken else [])
    if exact < len(got.taken):
        with pytest.raises(TokenFidelityError, match=f"turn {exact}"):
            stitcher.add(got.taken[exact])
        assert plain(stitcher.finish()) == before


def _cases(got):
    return [case for stream in got.trajectories for case in stream.boundaries]


@pytest.mark.parametrize("by_text", [False, True])
def test_the_work_of_a_turn_does_not_depend_on_the_turns_before(by_text):
    """Counted in calls, which a busy machine doesn't change: six times the turns are about six times the calls."""
    few, many = (_calls(turns, by_text) for turns in (20, 120))
    assert many < 6 * 1.2 * few


def _calls(turns, by_text):
    step = Step("go on", False, ("a", "b"), False, "stop", ("a b\n",), False, 0.0, "delta", False)
    world = happen(small_chat("bytes", 1, Style()), [step] * turns, RoutingLayout(2, 2, 8), 0, by_text=by_text)
    stitcher, calls = build(world), 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for turn in world.turns:
            stitcher.add(turn)
    finally:
        sys.setprofile(None)
    return calls

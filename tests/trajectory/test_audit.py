import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from random_turns import Plan, layouts, make_turns, plans, stitch
from toy_text import LAYOUT, TOY, names, turn

from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.audit_finding import WORST, Kind
from t1x.trajectory.records import Boundary, VersionSpan
from t1x.trajectory.stitcher import TokenStitcher

PLAN = [Plan(3, 3, False, 0, 0), Plan(2, 2, False, 0, 1), Plan(2, 4, False, 0, 1)]
"""[4 context, 3 sampled, 2 context, 2 sampled, 2 context, 4 sampled]"""


def stitched_by(turns):
    """Their trajectories, for turns of pieces."""
    return TokenStitcher().stitch("a trial", turns, TOY, LAYOUT)


@pytest.fixture
def trial():
    turns = make_turns(PLAN, (2, 2))
    return turns, stitch(turns)[0]


def edited(trajectory, name, at, value):
    array = getattr(trajectory, name).copy()
    array[at] = value
    return dataclasses.replace(trajectory, **{name: array})


@given(plans, layouts, st.integers(0, 9))
@promise
def test_what_the_stitcher_makes_is_faithful(plan, layout, seed):
    turns = make_turns(plan, layout, seed)
    found = audit(turns, stitch(turns))
    assert found.violations == found.context_differences == found.retokenized == found.substituted_rows == 0
    assert found.findings == ()
    assert found.positions == sum(len(trajectory.token_ids) for trajectory in stitch(turns))
    assert found.loss_tokens == sum(step.sampled for step in plan)
    restarts = sum(step.restart for step in plan[1:])
    assert found.boundaries == {b: n for b, n in ((Boundary.RESTART, restarts), (Boundary.EXACT, len(plan) - 1 - restarts)) if n}
    assert found.own_turn_fidelity == found.context_fidelity == 1


@pytest.mark.parametrize("name", ["token_ids", "logprobs"])
@pytest.mark.parametrize("at", [4, 6, 9, 16])
def test_a_changed_loss_position_is_one_violation(trial, name, at):
    turns, trajectory = trial
    found = audit(turns, [edited(trajectory, name, at, 77)])
    assert found.own_turn_violations == 1
    assert found.own_turn_fidelity == pytest.approx(1 - 1 / 9)


@pytest.mark.parametrize(("row", "violations"), [(2, 0), (3, 1), (5, 1), (6, 0), (8, 1), (15, 1)])
def test_a_changed_row_is_a_violation_where_it_predicts_a_sampled_token(trial, row, violations):
    turns, trajectory = trial
    rows = trajectory.routed_experts[row, 0][::-1]
    assert audit(turns, [edited(trajectory, "routed_experts", (row, 0), rows)]).own_turn_violations == violations


def test_a_wrong_version_is_a_violation(trial):
    turns, trajectory = trial
    wrong = dataclasses.replace(trajectory, versions=(VersionSpan(0, len(trajectory.token_ids), 1),))
    assert audit(turns, [wrong]).own_turn_violations == 3


def test_a_log_probability_on_context_is_a_violation(trial):
    turns, trajectory = trial
    assert audit(turns, [edited(trajectory, "logprobs", 7, -0.5)]).own_turn_violations == 1


def test_a_mask_that_misses_a_token_leaves_nothing_certified(trial):
    turns, trajectory = trial
    assert audit(turns, [edited(trajectory, "loss_mask", 5, False)]).own_turn_violations == 9


def test_a_turn_that_no_trajectory_holds_is_a_violation(trial):
    turns, _ = trial
    shortened = stitch(turns[:2])
    found = audit(turns, shortened)
    assert (found.own_turn_violations, found.loss_tokens) == (4, 9)
    assert audit(turns, []).own_turn_violations == 9


@pytest.mark.parametrize(("row", "misplaced"), [(0, 1), (2, 1), (3, 0), (5, 0), (6, 1), (7, 1), (8, 0)])
def test_a_changed_row_of_context_is_misplaced(trial, row, misplaced):
    turns, trajectory = trial
    found = audit(turns, [edited(trajectory, "routed_experts", (row, 0), trajectory.routed_experts[row, 0][::-1])])
    assert found.misplaced_rows == misplaced
    assert found.violations == 1
    (finding,) = found.findings
    assert (finding.kind, finding.position) == ((Kind.ROW, row) if misplaced else (Kind.ROUTING, row + 1))
    assert f"layer 0: the stream has {trajectory.routed_experts[row, 0][::-1].tolist()}" in finding.detail


@pytest.mark.parametrize(("at", "differing"), [(0, 9), (7, 6), (11, 4)])
def test_a_changed_context_counts_every_token_sampled_after_it(trial, at, differing):
    turns, trajectory = trial
    found = audit(turns, [edited(trajectory, "token_ids", at, 77)])
    assert (found.context_differences, found.own_turn_violations) == (differing, 0)
    assert found.context_fidelity == pytest.approx(1 - differing / 9)


def test_recomputed_rows_are_counted():
    turns = make_turns([Plan(3, 3, False, 0, 0), Plan(2, 2, False, 1.0, 0)], (2, 2))
    found = audit(turns, stitch(turns))
    first = turns[0].completion.routing
    again = turns[1].completion.routing[: len(first)]
    assert found.recomputed_rows == 6
    assert found.recomputed_differences == np.any(first != again, axis=(1, 2)).sum() > 0
    assert found.own_turn_violations == 0


def test_a_changed_id_of_context_is_retokenized(trial):
    turns, trajectory = trial
    found = audit(turns, [edited(trajectory, "token_ids", 7, 77)])
    assert (found.retokenized, found.own_turn_violations) == (1, 0)
    (told,) = (finding for finding in found.findings if finding.kind is Kind.CONTEXT)
    assert (told.kind, told.turn, told.later, told.count) == (Kind.CONTEXT, 1, 1, 2 + 4), "both turns for the same id"
    assert "at position 7 (6 of the turn and 1 later one)" in str(told)


def test_behind_a_wrong_token_the_rest_of_its_turn_has_another_context(trial):
    turns, trajectory = trial
    found = audit(turns, [edited(trajectory, "token_ids", 4, 77)])
    assert (found.own_turn_violations, found.context_differences) == (1, 2 + 2 + 4)


def test_rows_that_a_cache_served_are_compared_with_those_captured_before(trial):
    turns, trajectory = trial
    first, second = turns[0].completion.routing, turns[1].completion
    served = np.concatenate([first, second.routing])
    again = dataclasses.replace(turns[1], completion=dataclasses.replace(second, routing=served, routing_start=0, cached_tokens=6))
    assert audit([turns[0], again, turns[2]], [trajectory]) == audit(turns, [trajectory])
    served[3, 1] = served[3, 1][::-1]
    found = audit([turns[0], again, turns[2]], [trajectory])
    assert (found.cached_differences, found.recomputed_rows, found.violations) == (1, 0, 1)
    assert found.findings[0].kind is Kind.CACHED
    assert found.findings[0].detail.startswith("position 3 of the prompt, layer 1")


def test_placeholders_are_counted(trial):
    turns, trajectory = trial
    turns = [turns[0], dataclasses.replace(turns[1], placeholder_tokens=1), turns[2]]
    assert audit(turns, [trajectory]).metrics()["fidelity/placeholder_tokens"] == 1


@pytest.mark.parametrize(
    ("changed", "violations"), [([4, 9, 6], 1), ([4, 6], 1), ([4, 7, 8, 5, 6], 2), ([7, 8], 3), ([4, 5, 6, 7], 1)]
)
def test_an_answer_of_another_length_is_aligned_at_both_ends(changed, violations):
    """The turn sampled 4 5 6; a baseline that encodes text again may hold other ids, and more or fewer of them."""
    turn = make_turns([Plan(1, 3, False, 0, 0)], (0, 0))[0]
    done = dataclasses.replace(turn.completion, ids=np.array([4, 5, 6], np.int32), logprobs=np.full(3, -0.5, np.float32))
    turn = dataclasses.replace(turn, completion=done)
    (stream,) = stitch([turn])
    n = len(turn.prompt_ids) + len(changed)
    held = dataclasses.replace(
        stream,
        token_ids=np.array([*turn.prompt_ids, *changed], np.int32),
        loss_mask=np.arange(n) >= len(turn.prompt_ids),
        logprobs=np.where(np.arange(n) >= len(turn.prompt_ids), np.float32(-0.5), np.float32(0)),
        routed_experts=np.zeros((n - 1, 0, 0), np.uint8),
        versions=(VersionSpan(0, n, 0),),
    )
    found = audit([turn], [held])
    assert found.own_turn_violations == violations
    assert found.loss_tokens == max(3, len(changed))


def test_what_can_not_be_divided_is_shown_where_it_first_differs():
    """Loss positions that no turn explains."""
    (stream,) = stitched_by(TWO)
    longer = dataclasses.replace(
        stream,
        token_ids=np.insert(stream.token_ids, 5, 77).astype(np.int32),
        loss_mask=np.ones(len(stream.token_ids) + 1, np.bool_),
        logprobs=np.zeros(len(stream.token_ids) + 1, np.float32),
        routed_experts=np.concatenate([stream.routed_experts[:1], stream.routed_experts]),
    )
    (finding,) = audit(TWO, [longer]).findings
    assert (finding.kind, finding.turn, finding.position, finding.engine_position) == (Kind.MISSING, 1, 5, 5)
    assert finding.stream_ids[:3] == finding.engine_ids[:3]
    sampled = sum(len(each.completion.ids) for each in TWO)
    assert finding.detail.startswith(f"{len(longer.loss_mask)} loss positions for {sampled} sampled ids")
    masked = dataclasses.replace(stream, loss_mask=np.arange(len(stream.loss_mask)) == 2)
    (finding,) = audit(TWO, [masked]).findings
    assert (finding.position, finding.engine_position) == (2, 2), "its ids are right, its mask isn't"


def test_a_turn_that_no_trajectory_holds_is_shown_from_what_it_sampled(trial):
    turns, _ = trial
    (finding,) = (each for each in audit(turns, stitch(turns[:2])).findings if each.kind is Kind.MISSING)
    assert (finding.turn, finding.stream_ids) == (2, ())
    assert finding.engine_position == len(turns[2].prompt_ids)
    assert finding.engine_ids[-len(turns[2].completion.ids) :] == tuple(turns[2].completion.ids.tolist())


TWO = [
    turn(0, "<u> a <a>", "ls <e>"),
    turn(1, "<u> a <a> ls <e> <t> b <a>", "a <e>", start=4, cached=4),
]
EDGE = [turn(0, "<u> a <a>", "ls <e>"), turn(1, "<u> a <a> ls <t> b <a>", "a <e>", start=4, cached=4)]
"""The template dropped <e>, so that no turn captured its row: position 4 of the stream."""
SAME_TEXT = [
    turn(0, "<u> a <a>", "l s <e>", text=True),
    turn(1, "<u> a <a> ls <e> <t> b <a>", "a <e>", answered=(3, 4), start=3, cached=3),
]


def test_an_edge_with_a_substituted_row():
    trajectories = stitched_by(EDGE)
    found = audit(EDGE, trajectories)
    assert trajectories[0].substituted_rows == (4,)
    assert (found.boundaries, found.substituted_rows) == ({Boundary.EDGE: 1}, 1)
    assert found.violations == found.retokenized == 0
    assert found.context_differences == 2, "turn 1 didn't consume <e>"
    assert found.substituted_share == 1 / 10
    (finding,) = found.findings
    assert (finding.kind, finding.turn, finding.position) == (Kind.CONTEXT, 1, 4)
    assert names(finding.stream_ids) == "a <a> ls <e> <t> b <a> a"
    assert names(finding.engine_ids) == "a <a> ls <t> b <a> a <e>"


@pytest.mark.parametrize(
    ("row", "value", "why"),
    [
        (3, None, "predicts a loss token"),
        (4, 999, "doesn't repeat the row before it"),
        (0, None, "doesn't repeat the row before it"),
        (9, None, "isn't one of the 9 rows"),
        (-1, None, "isn't one of the 9 rows"),
    ],
)
def test_a_substitution_against_equation_14_is_a_violation(row, value, why):
    (trajectory,) = stitched_by(EDGE)
    rows = trajectory.routed_experts.copy()
    if value is not None:
        rows[row] = value
    wrong = dataclasses.replace(trajectory, routed_experts=rows, substituted_rows=tuple({4, row}))
    found = audit(EDGE, [wrong])
    assert found.misplaced_rows == 1
    assert found.findings[0].detail == f"a substituted row {why}"


def test_a_substitution_that_is_not_declared_is_a_violation():
    (trajectory,) = stitched_by(EDGE)
    found = audit(EDGE, [dataclasses.replace(trajectory, substituted_rows=())])
    assert found.misplaced_rows == 1
    assert (found.findings[0].kind, found.findings[0].position) == (Kind.ROW, 4)


def test_the_same_text_in_other_ids():
    """The stream keeps what was sampled, l s; the next turn consumed ls."""
    found = audit(SAME_TEXT, stitched_by(SAME_TEXT))
    assert found.boundaries == {Boundary.RETOKENIZED: 1}
    assert found.violations == found.retokenized == 0
    assert (found.context_differences, found.loss_tokens) == (2, 5)
    (finding,) = found.findings
    assert (names(finding.stream_ids), names(finding.engine_ids)) == (
        "<u> a <a> l s <e> <t> b",
        "<u> a <a> ls <e> <t> b <a>",
    )


def test_a_prompt_in_which_nothing_was_sampled_is_audited_too():
    """Nothing came of turn 1; where its prompt stands is known from the exact boundary."""
    turns = [
        turn(0, "<u> a <a>", "ls <e>"),
        turn(1, "<u> a <a> ls <e> <t> <a>", "", start=4, cached=4),
        turn(2, "<u> a <a> ls <e> <t> <a> <t> <a>", "a <e>", start=6, cached=6),
    ]
    (trajectory,) = stitched_by(turns)
    assert audit(turns, [trajectory]).violations == 0
    for at in (5, 7):
        rows = trajectory.routed_experts.copy()
        rows[at] = 999
        found = audit(turns, [dataclasses.replace(trajectory, routed_experts=rows)])
        assert (found.misplaced_rows, found.findings[0].position) == (1, at)
    (last,) = stitched_by(turns[:2])
    assert audit(turns[:2], [last]).violations == 0
    assert audit(turns[:2], [edited(last, "routed_experts", 5, 999)]).misplaced_rows == 1


def test_findings_are_bounded_and_the_worst_come_first(trial):
    turns, trajectory = trial
    one = audit(turns, [edited(edited(trajectory, "token_ids", 4, 77), "logprobs", 7, -0.5)], "a")
    assert [finding.kind for finding in one.findings] == [Kind.TOKEN, Kind.LOGPROB, Kind.CONTEXT]
    many = sum([audit(turns, [edited(trajectory, "token_ids", 0, 77)], f"t{i}") for i in range(30)], one)
    assert len(many.findings) == WORST
    assert [finding.trial for finding in many.findings[:2]] == ["a", "a"]
    assert str(many.findings[0]).startswith("Trial a, turn 0, token at position 4 (1 of the turn): the stream has [")


def test_what_differs_is_said():
    turns = make_turns(PLAN, (2, 2))
    (trajectory,) = stitch(turns)
    wrong = dataclasses.replace(trajectory, versions=(VersionSpan(0, len(trajectory.token_ids), 1),))
    (finding,) = audit(turns, [wrong]).findings
    assert (finding.kind, finding.count) == (Kind.VERSION, 3)
    assert finding.detail == "the stream has version 1, the turn 0"
    (finding,) = audit(turns, [edited(trajectory, "logprobs", 5, -9)]).findings
    assert finding.detail == f"the stream has -9, the turn {turns[0].completion.logprobs[1]:.6g}"


def test_audits_add_up(trial):
    turns, trajectory = trial
    whole = sum([audit(turns, [trajectory]), audit(turns, [edited(trajectory, "token_ids", 4, 77)])], Audit())
    assert (whole.loss_tokens, whole.own_turn_violations) == (18, 1)
    assert whole.boundaries[Boundary.EXACT] == 4
    assert whole.metrics()["fidelity/own_turn"] == pytest.approx(17 / 18)
    assert whole.metrics()["fidelity/boundary/exact"] == 4


def test_the_auditor_is_independent_of_the_stitchers():
    """Of this room it has records and modules of its own: no stitcher, and nothing that stitchers use (routing, captures, …)."""
    code = "import sys, t1x.trajectory.audit; print(*(m for m in sys.modules if m.startswith('t1x.trajectory.')))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {m for m in said if not m.startswith("t1x.trajectory.audit")} == {"t1x.trajectory.records"}

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_turns import Plan, layouts, make_turns, plans, stitch

from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.records import Boundary, VersionSpan

PLAN = [Plan(3, 3, False, 0, 0), Plan(2, 2, False, 0, 1), Plan(2, 4, False, 0, 1)]
"""[4 context, 3 sampled, 2 context, 2 sampled, 2 context, 4 sampled]"""


@pytest.fixture
def trial():
    turns = make_turns(PLAN, (2, 2))
    return turns, stitch(turns)[0]


def edited(trajectory, name, at, value):
    array = getattr(trajectory, name).copy()
    array[at] = value
    return dataclasses.replace(trajectory, **{name: array})


@given(plans, layouts, st.integers(0, 9))
@settings(deadline=None)
def test_what_the_stitcher_makes_is_faithful(plan, layout, seed):
    turns = make_turns(plan, layout, seed)
    found = audit(turns, stitch(turns))
    assert found.own_turn_violations == found.context_differences == 0
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


def test_audits_add_up(trial):
    turns, trajectory = trial
    whole = sum([audit(turns, [trajectory]), audit(turns, [edited(trajectory, "token_ids", 4, 77)])], Audit())
    assert (whole.loss_tokens, whole.own_turn_violations) == (18, 1)
    assert whole.boundaries[Boundary.EXACT] == 4
    assert whole.metrics()["fidelity/own_turn"] == pytest.approx(17 / 18)
    assert whole.metrics()["fidelity/boundary/exact"] == 4


def test_the_auditor_is_independent_of_the_stitchers():
    code = "import sys, t1x.trajectory.audit; print([m for m in sys.modules if 'stitch' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"

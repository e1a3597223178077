"""Rewards against worked examples of the report's equations."""

import pytest
from pydantic import ValidationError

from t1x.grading.report import VerifierReport
from t1x.grading.reward import BinaryReward, Spent, TestCountReward

SPENT = Spent(turns=3, tokens=40)


def report(passed: int, total: int) -> VerifierReport:
    return VerifierReport(tuple((f"t{index}", index < passed) for index in range(total)))


@pytest.mark.parametrize(
    ("passed", "total", "dense", "binary"),
    [
        (0, 5, 0.0, 0.0),
        (4, 5, 0.2, 0.0),
        (5, 5, 0.25, 1.0),
        (20, 20, 1.0, 1.0),
        (19, 20, 0.95, 0.0),
        (30, 30, 1.5, 1.0),  # an absolute count: not clamped at 1
        (4, 40, 0.2, 0.0),  # and not a ratio: 4 of 40 is worth what 4 of 5 is
    ],
)
def test_worked_examples(passed, total, dense, binary):
    assert TestCountReward()(report(passed, total), SPENT) == pytest.approx(dense)
    assert BinaryReward()(report(passed, total), SPENT) == binary


def test_the_scale_is_s_of_equation_20():
    assert TestCountReward(scale=8)(report(6, 7), SPENT) == 0.75


def test_a_report_without_assertions_is_worth_nothing():
    assert TestCountReward()(report(0, 0), SPENT) == 0.0
    assert BinaryReward()(report(0, 0), SPENT) == 0.0


@pytest.mark.parametrize("reward", [TestCountReward(), BinaryReward()])
def test_an_unusable_report_has_no_reward(reward):
    assert reward.objection(VerifierReport((("a", True),), "truncated", "cut at byte 7")) == "truncated: cut at byte 7"
    assert reward.objection(report(1, 2)) == ""


@pytest.mark.parametrize("scale", [0, -20, float("inf"), float("nan")])
def test_a_scale_that_makes_no_sense_is_refused(scale):
    with pytest.raises(ValidationError, match="scale"):
        TestCountReward(scale=scale)


def test_only_the_dense_reward_needs_a_record_of_every_assertion():
    assert TestCountReward.dense
    assert not BinaryReward.dense

"""Rewards against worked examples of the report's equations, and against a slow and obvious version of each."""

import dataclasses
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from t1x.config import load
from t1x.grading.report import VerifierReport
from t1x.grading.reward import BinaryReward, LengthPenalty, RatioReward, Reward, Spent, TestCountReward
from t1x.tasks.task import Task

SPENT = Spent(turns=3, tokens=40)
THE_REPORTS = TestCountReward(fallback="terminal", exclude_baseline=False)
TASK = Task(name="t", instruction="", environment=(), tests=(), solution=())


def report(passed: int, total: int, **more: object) -> VerifierReport:
    record = VerifierReport(tuple((f"t{index}", index < passed) for index in range(total)), expected=total, baseline=frozenset())
    return dataclasses.replace(record, **more)


def broken(outcome: bool | None, expected: int | None = 4, baseline: frozenset[str] | None = frozenset()) -> VerifierReport:
    return VerifierReport((), "truncated", "cut at byte 7", outcome=outcome, expected=expected, baseline=baseline)


@pytest.mark.parametrize(
    ("passed", "total", "dense", "ratio", "binary"),
    [
        (0, 5, 0.0, 0.0, 0.0),
        (4, 5, 0.2, 0.32, 0.0),
        (5, 5, 0.25, 1.0, 1.0),
        (20, 20, 1.0, 1.0, 1.0),
        (19, 20, 0.95, 0.38, 0.0),
        (30, 30, 1.5, 1.0, 1.0),  # an absolute count: not clamped at 1
        (4, 40, 0.2, 0.04, 0.0),  # and not a ratio: 4 of 40 is worth what 4 of 5 is
        (10, 20, 0.5, 0.2, 0.0),  # the report's example: by the ratio the same as
        (2, 4, 0.1, 0.2, 0.0),  # this
    ],
)
def test_worked_examples(passed: int, total: int, dense: float, ratio: float, binary: float) -> None:
    assert TestCountReward()(report(passed, total), SPENT) == pytest.approx(dense)
    assert RatioReward()(report(passed, total), SPENT) == pytest.approx(ratio)
    assert BinaryReward()(report(passed, total), SPENT) == binary
    penalty = LengthPenalty(reward=TestCountReward(), coefficient=0.01)
    assert penalty(report(passed, total), SPENT) == pytest.approx(dense - 0.03)
    by_tokens = LengthPenalty(reward=BinaryReward(), coefficient=0.005, unit="tokens")
    assert by_tokens(report(passed, total), SPENT) == pytest.approx(binary - 0.2)


def test_the_scale_is_s_of_equation_20() -> None:
    assert TestCountReward(scale=8)(report(6, 7), SPENT) == 0.75


@pytest.mark.parametrize("reward", [TestCountReward(), RatioReward(), BinaryReward()])
def test_a_report_without_assertions_is_worth_nothing(reward: Reward) -> None:
    assert reward(report(0, 0), SPENT) == 0.0


@pytest.mark.parametrize(
    ("reward", "solved"),
    [
        (THE_REPORTS, 1.0),
        (TestCountReward(), 0.2),  # 4 / 20, what a sound report of the solved task is worth
        (TestCountReward(scale=8), 0.5),
        (RatioReward(), 1.0),
        (BinaryReward(), 1.0),
        (LengthPenalty(reward=TestCountReward(), coefficient=0.01), 0.17),
    ],
)
def test_without_a_record_the_attested_outcome_is_paid(reward: Reward, solved: float) -> None:
    unsolved = -0.03 if isinstance(reward, LengthPenalty) else 0.0
    for outcome, worth in ((True, solved), (False, unsolved)):
        assert reward.objection(broken(outcome)) == ""
        assert reward(broken(outcome), SPENT) == pytest.approx(worth)
    assert reward.objection(broken(None)) == "truncated: cut at byte 7"


def test_breaking_the_report_never_pays_under_the_default() -> None:
    for total in (1, 4, 20, 35):
        for baseline in (frozenset(), frozenset({"t0"})):
            sound = TestCountReward()(report(total, total, baseline=baseline), SPENT)
            assert TestCountReward()(broken(True, total, baseline), SPENT) == pytest.approx(sound)
    assert THE_REPORTS(broken(True), SPENT) == 5 * THE_REPORTS(report(4, 4), SPENT), "the report's fallback does"


@pytest.mark.parametrize("outcome", [True, False])
def test_a_scaled_fallback_needs_to_know_how_many_assertions_there_are(outcome: bool) -> None:
    assert "the pool doesn't say how many assertions T there are" in TestCountReward().objection(broken(outcome, expected=None))
    assert THE_REPORTS.objection(broken(outcome, expected=None)) == ""


def test_what_passed_before_the_agent_acted_is_left_out() -> None:
    before = frozenset({"t0", "t4"})
    assert TestCountReward()(report(3, 5, baseline=before), SPENT) == 0.1
    assert TestCountReward()(report(5, 5, baseline=before), SPENT) == 0.15
    assert TestCountReward()(broken(True, 5, before), SPENT) == 0.15
    assert THE_REPORTS(report(3, 5, baseline=before), SPENT) == 0.15
    assert THE_REPORTS(report(3, 5, baseline=None), SPENT) == 0.15


def test_a_baseline_that_nobody_looked_for_is_objected_to() -> None:
    wrapped = LengthPenalty(reward=TestCountReward(), coefficient=1.0)
    for reward in (TestCountReward(), wrapped):
        for each in (report(1, 2, baseline=None), broken(True, baseline=None)):
            assert reward.objection(each).startswith("exclude_baseline is set, but which assertions")
        assert "`t1x tasks check` finds it out" in reward.task_objection(TASK)
        assert reward.task_objection(dataclasses.replace(TASK, baseline=frozenset())) == ""
    for reward in (THE_REPORTS, RatioReward(), BinaryReward()):
        assert reward.objection(report(1, 2, baseline=None)) == reward.task_objection(TASK) == ""


REPORTS = st.builds(
    VerifierReport,
    st.lists(st.booleans(), max_size=40).map(lambda oks: tuple((f"t{index}", ok) for index, ok in enumerate(oks))),
    st.sampled_from([None, "missing", "tests_changed"]),
    outcome=st.sampled_from([None, True, False]),
    expected=st.none() | st.integers(1, 40),
    baseline=st.none() | st.frozensets(st.integers(0, 40).map("t{}".format)),
).map(lambda made: dataclasses.replace(made, assertions=()) if made.cause else made)


def slowly(reward: Reward, found: VerifierReport, spent: Spent) -> Fraction | None:
    """What a report is worth by the equations, one assertion at a time; None where the trial is invalid."""
    b: bool | None
    if found.outcome is not None:
        b = found.outcome
    elif found.cause is not None:
        b = None
    else:
        b = len(found.assertions) > 0
        for _, ok in found.assertions:
            b = b and ok
    if isinstance(reward, LengthPenalty):
        inner = slowly(reward.reward, found, spent)
        length = {"turns": spent.turns, "tokens": spent.tokens}[reward.unit]
        return None if inner is None else inner - Fraction(reward.coefficient) * length
    if b is None:
        return None
    if isinstance(reward, BinaryReward):
        return Fraction(b)
    passing = [name for name, ok in found.assertions if ok]
    if isinstance(reward, RatioReward):
        ratio = Fraction(len(passing), len(found.assertions)) if found.assertions else Fraction(0)
        return min(max(Fraction(0), Fraction(b), Fraction(reward.coefficient) * ratio), max(Fraction(1), Fraction(b)))
    assert isinstance(reward, TestCountReward)
    if reward.exclude_baseline:
        if found.baseline is None:
            return None
        passing = [name for name in passing if name not in found.baseline]
    if found.cause is None:
        return len(passing) / Fraction(reward.scale)
    if reward.fallback == "terminal":
        return Fraction(b)
    if found.expected is None:
        return None
    left = found.expected - (len(found.baseline) if reward.exclude_baseline and found.baseline is not None else 0)
    return b * left / Fraction(reward.scale)


PLAIN = st.one_of(
    st.builds(
        TestCountReward,
        scale=st.floats(0.5, 64),
        fallback=st.sampled_from(["scaled", "terminal"]),
        exclude_baseline=st.booleans(),
    ),
    st.builds(RatioReward, coefficient=st.floats(0.1, 1)),
    st.just(BinaryReward()),
)
REWARDS = PLAIN | st.builds(LengthPenalty, reward=PLAIN, coefficient=st.floats(0.001, 1), unit=st.sampled_from(["turns", "tokens"]))


@given(reward=REWARDS, found=REPORTS, spent=st.builds(Spent, st.integers(0, 500), st.integers(0, 90_000)))
def test_every_reward_is_what_its_equation_says(reward: Reward, found: VerifierReport, spent: Spent) -> None:
    worth = slowly(reward, found, spent)
    assert (reward.objection(found) == "") == (worth is not None)
    if worth is not None:
        assert reward(found, spent) == pytest.approx(float(worth))


@pytest.mark.parametrize("bad", [0, -20, float("inf"), float("nan")])
def test_numbers_that_make_no_sense_are_refused(bad: float) -> None:
    with pytest.raises(ValidationError, match="scale"):
        TestCountReward(scale=bad)
    for coefficient in (bad, 1.01):  # more would pay 1 for less than all
        with pytest.raises(ValidationError, match="coefficient"):
            RatioReward(coefficient=coefficient)
    with pytest.raises(ValidationError, match="coefficient"):
        LengthPenalty(reward=BinaryReward(), coefficient=bad)


def test_a_dense_reward_is_dense_under_a_length_penalty_too() -> None:
    assert [each.dense for each in (TestCountReward(), RatioReward(), BinaryReward())] == [True, True, False]
    for inner in (TestCountReward(), BinaryReward()):
        assert LengthPenalty(reward=inner, coefficient=1.0).dense == inner.dense


def test_a_length_penalty_on_a_dense_reward_is_refused_where_there_is_no_record(tmp_path: Path) -> None:
    text = "include 'experiments/quickstart.gin'\nCampaign.reward = @LengthPenalty()\nLengthPenalty.coefficient = 0.01\n"
    text += "train/SyntheticPool.per_assertion = False\n"
    (tmp_path / "dense.gin").write_text(text + "LengthPenalty.reward = @TestCountReward()\n")
    (tmp_path / "binary.gin").write_text(text + "LengthPenalty.reward = @BinaryReward()\n")
    with pytest.raises(ValueError, match="reward LengthPenalty needs a record of each assertion, but pool SyntheticPool"):
        load(tmp_path / "dense.gin", site="laptop")
    assert load(tmp_path / "binary.gin", site="laptop").root

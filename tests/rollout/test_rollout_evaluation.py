from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import make_trial

from t1x.grading.report import VerifierReport
from t1x.rollout.evaluation import evaluation_metrics, pass_at
from t1x.trajectory.ending import EndedBy

OUTCOMES = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=5)
"""Of each attempt at each task, whether it resolved it."""


def trials_of(outcomes):
    return [
        make_trial(f"{task}.{attempt}", passed=4 if resolved else 1, task=f"{task}", families=("even",) if task % 2 == 0 else ())
        for task, attempts in enumerate(outcomes)
        for attempt, resolved in enumerate(attempts)
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_mean_over_all_choices_of_k_attempts(attempts, data):
    k = data.draw(st.integers(1, len(attempts)))
    chosen = [any(choice) for choice in combinations(attempts, k)]
    assert pass_at(k, len(attempts), sum(attempts)) == pytest.approx(np.mean(chosen), abs=1e-12)


@given(OUTCOMES)
def test_pass_at_k_of_a_suite_is_a_mean_over_the_tasks_that_have_k_attempts(outcomes):
    metrics = evaluation_metrics(trials_of(outcomes))
    most = max(len(attempts) for attempts in outcomes)
    for group, members in (("", outcomes), ("family/even/", outcomes[::2])):
        for k in range(1, most + 1):
            tasks = [np.mean([any(choice) for choice in combinations(each, k)]) for each in members if len(each) >= k]
            wanted = {f"{group}pass_at_{k}": np.mean(tasks)} if tasks and max(map(len, members)) > 1 else {}
            if wanted and len(tasks) > 1:
                wanted[f"{group}pass_at_{k}_se"] = np.std(tasks, ddof=1) / len(tasks) ** 0.5
            found = {name: metrics[name] for name in (f"{group}pass_at_{k}", f"{group}pass_at_{k}_se") if name in metrics}
            assert found == pytest.approx(wanted, abs=1e-12)
    assert f"pass_at_{most + 1}" not in metrics
    if most > 1:
        assert metrics["pass_at_1"] == pytest.approx(metrics["resolved_rate"])


def test_without_a_record_the_outcome_is_the_credit():
    def broken(name, outcome):
        return replace(make_trial(name, task=name), report=VerifierReport((), "missing", outcome=outcome))

    metrics = evaluation_metrics([make_trial("a", passed=2, task="a"), broken("b", True), broken("c", False)])
    assert metrics["partial_credit"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert metrics["resolved_rate"] == pytest.approx(1 / 3)


def test_an_invalid_attempt_is_none():
    """Two of three attempts are left: pass@2 of a task that one of them resolves is 1, and there is no pass@3."""
    trials = [*trials_of([[True, False]]), make_trial("0.2", task="0", ended_by=EndedBy.ENGINE_ERROR)]
    metrics = evaluation_metrics(trials)
    assert (metrics["pass_at_1"], metrics["pass_at_2"], metrics["invalid"]) == (0.5, 1, 1)
    assert not {"pass_at_3", "pass_at_2_se"} & metrics.keys()


def test_turns_by_outcome_and_how_trials_ended():
    trials = [
        make_trial("a", passed=4, turns=2, task="1"),
        make_trial("b", passed=1, turns=5, task="2", ended_by=EndedBy.CONTEXT),
        make_trial("c", passed=2, turns=8, task="3", ended_by=EndedBy.TURN_LIMIT),
        make_trial("d", turns=9, task="4", ended_by=EndedBy.ENGINE_ERROR),
    ]
    metrics = evaluation_metrics(trials)
    assert (metrics["turns_mean"], metrics["turns_resolved"], metrics["turns_failed"]) == (5, 2, 6.5)
    assert {name: value for name, value in metrics.items() if name.startswith("ended_by/")} == pytest.approx(
        {"ended_by/done": 1 / 3, "ended_by/context": 1 / 3, "ended_by/turn_limit": 1 / 3, "ended_by/agent_deadline": 0}
    )
    assert "turns_failed" not in evaluation_metrics(trials[:1])
    assert "turns_resolved" not in evaluation_metrics(trials[1:])


def test_repeated_turns_are_those_that_a_trial_has_sampled_before():
    """Of 4 + 1 turns two repeat one of their own trial; that the other trial samples the same is no repetition."""

    def sampled(trial, *words):
        turns = [replace(trial.turns[0], completion=replace(trial.turns[0].completion, ids=np.array(w, np.int32))) for w in words]
        return replace(trial, turns=tuple(turns))

    trials = [
        sampled(make_trial("a", task="1"), [1, 2], [3], [1, 2], [1, 2]),
        sampled(make_trial("b", task="2"), [3]),
    ]
    assert evaluation_metrics(trials)["repeated_turns"] == pytest.approx(2 / 5)
    assert "repeated_turns" not in evaluation_metrics([make_trial("a", turns=0)])


def test_an_evaluation_by_family_and_difficulty():
    trials = [
        make_trial("a", passed=4, task="1", families=("sort", "move"), difficulty="easy"),
        make_trial("b", passed=3, task="2", families=("sort", "sort"), difficulty="hard"),
        make_trial("c", passed=4, task="3", families=("move",), difficulty="hard"),
        make_trial("d", task="4", ended_by=EndedBy.VERIFIER_ERROR, families=("sort",)),
    ]
    metrics = evaluation_metrics(trials)
    assert metrics["resolved_rate"] == pytest.approx(2 / 3)
    assert metrics["resolved_rate_se"] == pytest.approx(np.std([1, 0, 1], ddof=1) / 3**0.5)
    assert metrics["partial_credit"] == pytest.approx((1 + 0.75 + 1) / 3)
    assert metrics["partial_credit_se"] == pytest.approx(np.std([1, 0.75, 1], ddof=1) / 3**0.5)
    assert metrics["family/sort/partial_credit"] == pytest.approx(0.875)
    assert metrics["family/sort/resolved_rate"] == 0.5
    assert metrics["family/move/resolved_rate"] == 1
    assert metrics["difficulty/hard/resolved_rate"] == 0.5
    assert metrics["difficulty/easy/resolved_rate"] == 1
    assert "difficulty/easy/resolved_rate_se" not in metrics
    assert metrics["reward_mean"] == pytest.approx((0.2 + 0.15 + 0.2) / 3)
    assert metrics["reward_mean_se"] == pytest.approx(np.std([0.2, 0.15, 0.2], ddof=1) / 3**0.5)
    assert metrics["family/sort/reward_mean"] == pytest.approx(0.175)
    assert (metrics["valid"], metrics["invalid"], metrics["tasks"]) == (3, 1, 3)


def test_the_standard_error_is_the_binomial_one_for_single_attempts():
    n, solved = 400, 170
    trials = [make_trial(f"{i}", passed=4 if i < solved else 0, task=f"{i}") for i in range(n)]
    p = solved / n
    assert evaluation_metrics(trials)["resolved_rate_se"] == pytest.approx((p * (1 - p) / (n - 1)) ** 0.5)


def test_attempts_at_one_task_are_not_independent():
    """Three attempts that always agree carry no more than one."""
    one = [make_trial(f"{i}", passed=4 if i < 3 else 0, task=f"{i}") for i in range(8)]
    three = [make_trial(f"{i}-{k}", passed=4 if i < 3 else 0, task=f"{i}") for i in range(8) for k in range(3)]
    for name in ("resolved_rate", "resolved_rate_se", "partial_credit", "partial_credit_se", "tasks"):
        assert evaluation_metrics(three)[name] == pytest.approx(evaluation_metrics(one)[name])


def test_attempts_at_a_task_are_averaged_first() -> None:
    """A task of three attempts weighs no more than one of a single attempt: P/T is 1/4, 1/2, 3/4 and 1."""
    trials = [make_trial(f"0-{k}", passed=k + 1, task="0") for k in range(3)] + [make_trial("1", passed=4, task="1")]
    metrics = evaluation_metrics(trials)
    assert metrics["partial_credit"] == pytest.approx((0.5 + 1) / 2)
    assert metrics["partial_credit_se"] == pytest.approx(np.std([0.5, 1], ddof=1) / 2**0.5)
    assert metrics["resolved_rate"] == pytest.approx(0.5)


def test_no_valid_trial_gives_counts_only():
    assert evaluation_metrics([make_trial("a", ended_by=EndedBy.SANDBOX_ERROR)]) == {"valid": 0, "invalid": 1}

import math

import numpy as np
import pytest

from t1x.engine.protocol import Completion
from t1x.grading.report import VerifierReport
from t1x.harness.records import EndedBy
from t1x.rollout.metrics import evaluation_metrics, rollout_metrics
from t1x.rollout.records import RolloutBatch, Trial
from t1x.tasks.task import Task
from t1x.trajectory.records import Trajectory, Turn


def make_trial(
    trial_id, *, passed=0, total=4, turns=1, ended_by=EndedBy.DONE, task="t", families=(), difficulty="easy", tokens=5, **more
):
    completion = Completion(np.ones(1, np.int32), np.zeros(1, np.float32), np.zeros((1, 0, 0), np.uint8), 0, "stop", 0)
    trajectory = Trajectory(
        token_ids=np.ones(tokens, np.int32),
        loss_mask=np.arange(tokens) >= tokens - turns,
        logprobs=np.zeros(tokens, np.float32),
        routed_experts=np.zeros((tokens - 1, 0, 0), np.uint8),
        versions=(),
        boundaries=(),
        temperature=1.0,
    )
    report = VerifierReport(tuple((f"a{i}", i < passed) for i in range(total)))
    return Trial(
        id=trial_id,
        task=Task(task, "", (), (), (), families, difficulty),
        turns=tuple(Turn(i, np.ones(1, np.int32), completion, 1.0) for i in range(turns)),
        ended_by=ended_by,
        report=report if ended_by.counts else None,
        reward=passed / 20 if ended_by.counts else None,
        trajectories=(trajectory,) if ended_by.counts else (),
        transcript=(),
        **more,
    )


def test_a_worked_batch():
    batch = RolloutBatch(
        admitted=(
            make_trial("a", passed=4, turns=2, timings={"create": 1.0, "agent": 2.0}),
            make_trial("b", passed=1, turns=4, ended_by=EndedBy.TURN_LIMIT, tokens=9, timings={"create": 3.0}),
        ),
        others=(
            make_trial("c", ended_by=EndedBy.CANCELLED),
            make_trial("d", ended_by=EndedBy.CANCELLED),
            make_trial("e", ended_by=EndedBy.SANDBOX_ERROR),
            make_trial("f", passed=4),
        ),
    )
    metrics = rollout_metrics(batch)
    assert metrics == pytest.approx(
        {
            "rollout/reward_mean": (0.2 + 0.05) / 2,
            "rollout/turns_mean": 3,
            "rollout/resolved_rate": 0.5,
            "rollout/assertion_share": (1 + 0.25) / 2,
            "rollout/ended_by/done": 0.5,
            "rollout/ended_by/turn_limit": 0.5,
            "rollout/ended_by/context": 0,
            "rollout/ended_by/agent_deadline": 0,
            "rollout/tokens": 14,
            "rollout/loss_tokens": 6,
            "rollout/launched": 6,
            "rollout/admitted": 2,
            "rollout/cancelled": 2,
            "rollout/late": 1,
            "rollout/invalid": 1,
            "time/trial_create": 2,
            "time/trial_agent": 2,
        }
    )


def test_nothing_admitted_reports_no_mean():
    metrics = rollout_metrics(RolloutBatch((), (make_trial("a", ended_by=EndedBy.ENGINE_ERROR),)))
    assert "rollout/reward_mean" not in metrics
    assert (metrics["rollout/invalid"], metrics["rollout/admitted"]) == (1, 0)
    assert all(math.isfinite(value) for value in metrics.values())


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

import math
from dataclasses import replace

import numpy as np
import pytest
from made_trials import make_trial

from t1x.grading.report import Cause, VerifierReport
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.payment import payment
from t1x.rollout.records import RolloutBatch, Trial
from t1x.rollout.retention import retention
from t1x.tracking.log import check_name
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn


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
            make_trial("g", ended_by=EndedBy.SANDBOX_ERROR),
            make_trial("h", ended_by=EndedBy.REMOTE_DEADLINE),
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
            "rollout/launched": 8,
            "rollout/admitted": 2,
            "rollout/cancelled": 2,
            "rollout/late": 1,
            "rollout/invalid": 3,
            "rollout/invalid/sandbox_error": 2,
            "rollout/invalid/engine_error": 0,
            "rollout/invalid/verifier_error": 0,
            "rollout/invalid/remote_deadline": 1,
            "rollout/retention/difficulty/easy": 2 / 5,
            "rollout/retention/length/below_64": 2 / 5,
            "rollout/retention/ended_by/cancelled": 2 / 3,
            "rollout/retention/ended_by/done": 1 / 3,
            "rollout/passed_mean": 2.5,
            "rollout/fallback_share": 0,
            "time/trial_create": 2,
            "time/trial_agent": 2,
        }
    )


def test_what_was_paid_for_is_told_with_the_causes_of_what_had_no_record() -> None:
    def broken(name: str, cause: Cause, outcome: bool | None, **more: object) -> Trial:
        return replace(make_trial(name, **more), report=VerifierReport((), cause, outcome=outcome, baseline=frozenset()))

    def checked(name: str, passed: int, baseline: set[str], **more: object) -> Trial:
        made = make_trial(name, passed=passed, **more)
        assert made.report is not None
        return replace(made, report=replace(made.report, baseline=frozenset(baseline)))

    batch = RolloutBatch(
        admitted=(
            checked("a", 3, {"a0", "a3"}),
            checked("b", 2, {"a0", "a1"}),
            make_trial("c", passed=4),
            broken("d", "truncated", True),
        ),
        others=(
            broken("e", "truncated", None, ended_by=EndedBy.VERIFIER_ERROR),
            broken("f", "missing", None, ended_by=EndedBy.VERIFIER_ERROR),
            make_trial("g", ended_by=EndedBy.SANDBOX_ERROR),
        ),
    )
    assert payment(batch) == {
        "passed_mean": 3.0,
        "baseline_passed_mean": 1.5,
        "fallback_share": 0.25,
        "unusable/missing": 1.0,
        "unusable/truncated": 2.0,
    }
    assert (
        payment(batch).items() <= {name.removeprefix("rollout/"): value for name, value in rollout_metrics(batch).items()}.items()
    )
    for name in rollout_metrics(batch):
        check_name("metric", name)
    assert payment(RolloutBatch((), ())) == {}


def test_retention_tells_who_was_left_out() -> None:
    def trial(name: str, turns: int, **more: object) -> Trial:
        made = make_trial(name, turns=1, **more)
        completion = replace(made.turns[0].completion, ids=np.ones(40, np.int32))
        return replace(made, turns=tuple(Turn(i, np.ones(1, np.int32), completion, 1.0) for i in range(turns)))

    batch = RolloutBatch(
        admitted=(trial("a", 1, families=("move", "sort")), trial("b", 1, families=("sort",)), trial("c", 2, difficulty="hard")),
        others=(
            trial("d", 2, families=("sort",), ended_by=EndedBy.CANCELLED),
            trial("e", 2000, difficulty="hard", ended_by=EndedBy.CANCELLED),
            trial("f", 0, difficulty="hard", ended_by=EndedBy.CANCELLED),
            trial("g", 7, difficulty="hard", ended_by=EndedBy.TURN_LIMIT),
            trial("h", 1, difficulty="never", families=("never",), ended_by=EndedBy.SANDBOX_ERROR),
        ),
    )
    assert retention(batch) == {
        "family/move": 1.0,
        "family/sort": 2 / 3,
        "difficulty/easy": 2 / 3,
        "difficulty/hard": 1 / 4,
        "length/below_64": 2 / 3,
        "length/below_256": 1 / 2,
        "length/below_1024": 0.0,
        "length/65536_and_more": 0.0,
        "ended_by/cancelled": 3 / 4,
        "ended_by/turn_limit": 1 / 4,
    }
    for name in rollout_metrics(batch):
        check_name("metric", name)
    assert retention(replace(batch, others=batch.others[-1:])) == {}
    assert retention(replace(batch, admitted=()))["difficulty/hard"] == 0


def test_nothing_admitted_reports_no_mean():
    metrics = rollout_metrics(RolloutBatch((), (make_trial("a", ended_by=EndedBy.ENGINE_ERROR),)))
    assert "rollout/reward_mean" not in metrics
    assert (metrics["rollout/invalid"], metrics["rollout/admitted"]) == (1, 0)
    assert all(math.isfinite(value) for value in metrics.values())

import math

import pytest
from made_trials import make_trial

from t1x.harness.records import EndedBy
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.records import RolloutBatch


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

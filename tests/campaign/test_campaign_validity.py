"""What is said, and to whom it is put down, where no trial is valid."""

import pytest

from t1x.campaign.validity import causes, failure
from t1x.harness.records import EndedBy
from t1x.rollout.records import Trial
from t1x.tasks.task import Task


def ended(ended_by: EndedBy, task: str, error: str = "") -> Trial:
    return Trial("", Task(task, "", (), (), ()), (), ended_by, None, None, (), (), error=error)


TIMEOUTS = [ended(EndedBy.VERIFIER_ERROR, task, "timeout: 1 s") for task in ("rename", "pack")]


def test_causes_are_counted_and_name_a_task() -> None:
    said = causes([ended(EndedBy.CANCELLED, "sort"), *TIMEOUTS])
    assert said == "2 × verifier_error: timeout: 1 s (task rename); 1 × cancelled (task sort)"


def test_an_engine_that_fails_is_a_fault_and_a_verifier_that_fails_a_mistake() -> None:
    with pytest.raises(ValueError, match="no trial: 2 × verifier_error: timeout: 1 s"):
        raise failure("no trial", TIMEOUTS)
    with pytest.raises(RuntimeError, match="engine_error: broken"):
        raise failure("no trial", [*TIMEOUTS, ended(EndedBy.ENGINE_ERROR, "sort", "broken")])

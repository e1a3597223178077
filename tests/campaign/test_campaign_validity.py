"""What is said, and to whom it is put down, where no trial is valid."""

from dataclasses import replace

import pytest

from t1x.campaign.validity import SHOWN, cause_lines, causes, failure
from t1x.grading.report import unusable
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy


def ended(ended_by: EndedBy, task: str, error: str = "") -> Trial:
    return Trial("", Task(task, "", (), (), ()), (), ended_by, None, None, (), (), error=error)


TIMEOUTS = [ended(EndedBy.VERIFIER_ERROR, task, "timeout: 1 s") for task in ("rename", "pack")]


def test_causes_are_counted_and_name_a_task() -> None:
    said = causes([ended(EndedBy.CANCELLED, "sort"), *TIMEOUTS])
    assert said == "2 × verifier_error: timeout: 1 s (task rename); 1 × cancelled (task sort)"


def test_causes_are_grouped_and_short() -> None:
    """As of a pool in which each Dockerfile fails for want of a network, and each verifier prints much."""
    runs = [
        ended(
            EndedBy.SANDBOX_ERROR,
            f"shop-{i}",
            f"task shop-{i}: /pool/shop-{i}/environment/Dockerfile:{i}: RUN apt-get update: exit status 1; no network; it printed: "
            + f"E: {i}\n" * 500,
        )
        for i in range(3)
    ]
    reports = [
        replace(ended(EndedBy.VERIFIER_ERROR, f"sum-{i}", f"missing: {text}"), report=unusable("missing", text))
        for i, text in enumerate(["[/tmp] Traceback\n  line 1\n" * 80, "\x1b[31mno such file", "nothing"])
    ]
    lines = cause_lines([*reports, *runs, ended(EndedBy.SANDBOX_ERROR, "full", "no room")])
    assert [line.split(":")[0] for line in lines] == ["3 × verifier_error", "3 × sandbox_error", "1 × sandbox_error"]
    assert lines[1].endswith("/Dockerfile:0: RUN apt-get update: exit status 1; no network (task shop-0)")
    assert all(len(line) < 300 and line.isprintable() for line in lines)
    many = cause_lines(ended(EndedBy.SANDBOX_ERROR, "a", "x" * i) for i in range(1, SHOWN + 4))
    assert len(many) == SHOWN + 1
    assert many[-1] == "3 × 3 other causes"


def test_an_engine_that_fails_is_a_fault_and_a_verifier_that_fails_a_mistake() -> None:
    with pytest.raises(ValueError, match="no trial: 2 × verifier_error: timeout: 1 s"):
        raise failure("no trial", TIMEOUTS)
    with pytest.raises(RuntimeError, match="engine_error: broken"):
        raise failure("no trial", [*TIMEOUTS, ended(EndedBy.ENGINE_ERROR, "sort", "broken")])

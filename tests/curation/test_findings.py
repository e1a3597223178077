"""What runs come to is judged the same way whatever ran."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from t1x.curation.attempt import Attempt
from t1x.curation.findings import judge
from t1x.curation.meaning import MEANING, grouped
from t1x.grading.report import VerifierReport
from t1x.tasks.manifest import FAULTS, Manifest, Settings
from t1x.tasks.task import SubGoal, Task

TASK = Task("a", "Do it.", (), (), (SubGoal("solution", ("true",)),), verifier_timeout=10.0)


def ran(*assertions: tuple[str, bool], seconds: float = 0.1, trouble: str = "", overran: bool = False, **report) -> Attempt:
    return Attempt(VerifierReport(assertions, seconds=seconds, **report), 0.5, 0.25, trouble, overran)


UNTOUCHED = ran(("x", False), ("y", True))
SOLVED = ran(("x", True), ("y", True))


def faults(untouched: Attempt, *solved: Attempt, task: Task = TASK) -> dict[str, str]:
    return {found.fault: found.detail for found in judge(task, "d", untouched, solved).findings}


def test_a_sound_task_has_no_finding_and_its_entry_says_what_was_seen():
    entry = judge(TASK, "d", UNTOUCHED, [SOLVED, ran(("x", True), ("y", True), seconds=2.0)])
    assert entry.findings == ()
    assert (entry.sha256, entry.assertions, entry.baseline) == ("d", ("x", "y"), ("y",))
    assert (entry.seconds.environment, entry.seconds.solution, entry.seconds.verifier) == (0.5, 0.25, 2.0)


def test_an_assertion_that_wavers_is_flaky_and_one_that_always_fails_is_the_solutions():
    wavering = ran(("x", True), ("y", False))
    assert faults(UNTOUCHED, SOLVED, wavering) == {"flaky": "the same solution passed in 1 of 2 runs: y"}
    both = faults(UNTOUCHED, ran(("x", False), ("y", True)), ran(("x", False), ("y", False), trouble="exit status 3"))
    assert both["flaky"] == "the same solution passed in 0 of 2 runs: y"
    assert both["solution_fails"] == "1 of 2 assertions fail: x; exit status 3"


def test_names_that_differ_between_runs_are_flaky_and_said_to_be_that():
    assert faults(UNTOUCHED, SOLVED, ran(("x", True), ("z", True))) == {
        "flaky": "the same solution passed in 2 of 2 runs; names of assertions differ from run to run, and should be the same in "
        "each: y, z"
    }
    assert list(faults(UNTOUCHED, SOLVED, ran(("x", True)))) == ["flaky"]


def test_outcomes_without_a_record_are_judged_too():
    good, bad = ran(outcome=True), ran(outcome=False)
    assert faults(bad, good) == {}
    assert list(faults(good, good)) == ["passes_untouched"]
    assert faults(bad, good, bad) == {"flaky": "the same solution passed in 1 of 2 runs"}
    assert faults(bad, bad) == {"solution_fails": "the verifier rejects it; each command exited with 0"}


def test_an_outcome_that_is_attested_counts_where_the_record_is_unusable():
    collected = {"cause": "crashed", "detail": "not all tests can be collected: x"}
    assert faults(ran(outcome=False, **collected), SOLVED) == {}
    assert faults(ran(outcome=False, **collected), ran(outcome=False, **collected)) == {
        "solution_fails": "the verifier rejects it: not all tests can be collected: x; each command exited with 0"
    }
    assert list(faults(ran(**collected), SOLVED)) == ["verifier_unusable"]


def test_a_task_that_passes_untouched_is_told_once():
    assert list(faults(SOLVED, SOLVED)) == ["passes_untouched"]


def test_a_cause_is_told_once_with_the_run_that_it_was_seen_in():
    missing = ran(cause="missing", detail="the verifier wrote no report")
    assert faults(UNTOUCHED, SOLVED, missing, missing) == {
        "verifier_unusable": "missing, in run 2 of 3 of the solution: the verifier wrote no report"
    }
    assert "on the untouched environment" in faults(missing, missing)["verifier_unusable"]
    assert list(faults(ran(cause="in_process", detail="x"), SOLVED)) == ["in_process"]
    assert list(faults(missing, task=replace(TASK, solution=()))) == ["verifier_unusable", "no_solution"]


def test_a_report_of_no_assertion_is_unusable_only_where_the_task_has_some():
    empty = {"cause": "test_set_mismatch", "detail": "no assertion is reported"}
    assert list(faults(ran(**empty), ran(**empty))) == ["asserts_nothing"]
    assert list(faults(ran(**empty, expected=3), ran(**empty, expected=3))) == ["verifier_unusable"]


@pytest.mark.parametrize(("seconds", "near"), [(5.0, False), (5.1, True)])
def test_a_verifier_is_near_its_deadline_above_half_of_it(seconds, near):
    slow = ran(("x", True), ("y", True), seconds=seconds)
    assert ("near_deadline" in faults(UNTOUCHED, slow)) is near


def test_a_solution_that_overruns_fails_whatever_the_verifier_says():
    late = ran(("x", True), ("y", True), overran=True, trouble="ran out of the agent's 3600 s")
    assert faults(UNTOUCHED, late) == {"solution_fails": "ran out of the agent's 3600 s"}


def test_what_utf8_cannot_say_is_escaped():
    entry = judge(TASK, "d", UNTOUCHED, [ran(("x\ud800", False))])
    assert entry.assertions == ("x\\ud800",)
    assert entry.baseline is None, "of assertions that have other names when it is solved, none is known to hold before"
    assert entry.model_dump_json()


def test_the_docs_have_a_line_for_every_fault():
    page = (Path(__file__).parents[2] / "docs" / "pools.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE))[: len(FAULTS)] == FAULTS


def test_every_fault_has_a_meaning_and_findings_are_grouped_by_it():
    assert set(MEANING) == set(FAULTS)
    tasks = {
        name: judge(TASK, "d", untouched, [SOLVED, *more])
        for name, untouched, more in (
            ("fine", UNTOUCHED, []),
            ("idle", SOLVED, []),
            ("worse", SOLVED, [ran(("x", False), ("y", True))]),
        )
    }
    groups = grouped(Manifest(settings=Settings(sandbox="s", repeats=2), tasks=tasks))
    assert [(group.fault, [name for name, _ in group.tasks]) for group in groups] == [
        ("passes_untouched", ["idle", "worse"]),
        ("flaky", ["worse"]),
    ]

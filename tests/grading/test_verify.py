"""Verification end to end, in real sandboxes; `test_attacks` has the agents that attack it."""

import dataclasses
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from judging import judging

from t1x.grading.reward import BinaryReward, Spent, TestCountReward
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task, TaskFile

CHECKS = b"""
import json, os, pathlib
app = pathlib.Path("/app")
checks = {
    "greeting": (app / "greeting").is_file() and (app / "greeting").read_text() == "hello\\n",
    "input kept": (app / "in.txt").read_text() == "in\\n",
}
tests = [{"name": name, "status": "passed" if good else "failed", "duration": 0} for name, good in checks.items()]
passed = sum(checks.values())
summary = {"tests": 2, "passed": passed, "failed": 2 - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
report = {"results": {"tool": {"name": "t"}, "summary": summary, "tests": tests}}
pathlib.Path("/logs/verifier/ctrf.json").write_text(json.dumps(report))
"""
FAKE = (
    '{"results": {"tool": {"name": "t"}, "summary": {"tests": 2, "passed": 2, "failed": 0}, "tests": '
    '[{"name": "greeting", "status": "passed"}, {"name": "input kept", "status": "passed"}]}}'
)
MISCOUNTED = FAKE.replace('"passed": 2', '"passed": 1')
TASK = Task(
    "hand-made",
    "",
    (TaskFile("in.txt", b"in\n"),),
    (TaskFile("test.sh", b"exec python3 -I /tests/lib/checks.py\n", 0o755), TaskFile("lib/checks.py", CHECKS)),
    (),
    assertions=2,
    verifier_timeout=30.0,
)


def with_test(script: str, **fields) -> Task:
    return dataclasses.replace(TASK, tests=(TaskFile("test.sh", script.encode()),), **fields)


@pytest.fixture(params=[BubblewrapSandbox, ProcessSandbox])
def judge(request, root):
    return judging(request.param, root)


@pytest.fixture
def isolated(root):
    return judging(BubblewrapSandbox, root)


def test_a_solved_and_an_unsolved_task(judge):
    solved, unsolved = judge(TASK, "echo hello >greeting"), judge(TASK)
    assert solved.assertions == (("greeting", True), ("input kept", True))
    assert (solved.cause, solved.detail) == (None, "")
    assert 0 < solved.seconds < 30
    assert unsolved.assertions == (("greeting", False), ("input kept", True))
    assert [TestCountReward()(report, Spent(1, 9)) for report in (solved, unsolved)] == [0.1, 0.05]
    assert [BinaryReward()(report, Spent(1, 9)) for report in (solved, unsolved)] == [1.0, 0.0]


def test_the_references_of_bundled_tasks_resolve_and_doing_nothing_does_not(judge):
    pool = SyntheticPool(split="train", size=6).build()
    for index in range(6):
        task = pool[index]
        solved = judge(task, *(command for goal in task.solution for command in goal.commands))
        assert (solved.resolved, solved.total) == (True, task.assertions)
    assert not judge(pool[0]).resolved


def test_the_tests_can_not_be_modified_by_what_they_run(isolated):
    report = isolated(with_test("echo x >/tests/test.sh; touch /tests/new; rm -f /tests/test.sh; chmod 777 /tests; ls /tests"))
    assert report.cause == "missing"
    assert report.detail.count("Read-only file system") == 4
    assert report.detail.endswith("test.sh")


def test_the_agent_never_sees_the_tests(isolated):
    listed = with_test("cat /app/seen")
    report = isolated(listed, "ls -d /tests /logs >seen 2>&1; grep -rl app/seen /app /tmp /home /dev/shm >>seen 2>/dev/null")
    assert report.detail.count("No such file") == 2
    assert "test.sh" not in report.detail


def test_a_process_of_the_agent_is_dead_before_the_verifier_runs(judge):
    counter = "(trap '' TERM HUP; setsid bash -c 'while :; do echo >>beat; sleep 0.01; done' >/dev/null 2>&1) & disown; sleep 0.2"
    report = judge(with_test("a=$(wc -l </app/beat); sleep 0.3; b=$(wc -l </app/beat); echo $a $b"), counter)
    first, second = report.detail.split()[-2:]
    assert int(first) > 0
    assert first == second


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("true", "missing"),
        ("exit 3", "missing"),
        ("bash -c 'kill -9 $$'", "crashed"),
        (": >/logs/verifier/ctrf.json", "empty"),
        ("echo '{\"results\": {' >/logs/verifier/ctrf.json", "truncated"),
        ("head -c 5000 /dev/urandom >/logs/verifier/ctrf.json", "unparsable"),
        ("echo PASSED >/logs/verifier/ctrf.json", "unparsable"),
        ("echo '{}' >/logs/verifier/ctrf.json", "bad_schema"),
        (f"echo '{FAKE.replace('input kept', 'greeting')}' >/logs/verifier/ctrf.json", "duplicate"),
        (f"echo '{MISCOUNTED}' >/logs/verifier/ctrf.json", "summary_mismatch"),
        ("mkfifo /logs/verifier/ctrf.json", "not_regular_file"),
        ("ln -s /app/in.txt /logs/verifier/ctrf.json", "not_regular_file"),
        ("mkdir /logs/verifier/ctrf.json", "not_regular_file"),
        ("truncate -s 100M /logs/verifier/ctrf.json", "too_large"),
    ],
)
def test_a_broken_verifier_has_its_cause(judge, script, cause):
    report = judge(with_test(f"echo said; {script}"))
    assert report.cause == cause
    assert report.assertions == ()
    assert "said" in report.detail


@pytest.mark.parametrize("name", ["reward.txt", "reward.json"])
def test_a_script_that_leaves_harbors_reward_alone_is_told_of_that_mode(judge, name):
    report = judge(with_test(f"echo 1 >/logs/verifier/{name}"))
    assert (report.cause, report.terminal) == ("missing", None)
    assert f'the verifier wrote {name}, but no ctrf.json; mode = "harbor" under' in report.detail


def test_a_task_with_another_number_of_assertions(judge):
    report = judge(with_test(f"echo '{FAKE}' >/logs/verifier/ctrf.json", assertions=3))
    assert report.cause == "test_set_mismatch"
    assert "2 assertions are reported, the task has 3" in report.detail
    assert judge(with_test(f"echo '{FAKE}' >/logs/verifier/ctrf.json", assertions=None)).resolved


def test_a_verifier_that_hangs_is_a_timeout_whatever_it_wrote(judge):
    began = time.monotonic()
    script = f"echo '{FAKE}' >/logs/verifier/ctrf.json; setsid sleep 600 & echo begun; sleep 600"
    report = judge(with_test(script, verifier_timeout=1.0))
    assert report.cause == "timeout"
    assert "longer than 1 s" in report.detail
    assert "begun" in report.detail
    assert "exit status" not in report.detail
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("locked", ["/logs/verifier/ctrf.json", "/logs/verifier"])
def test_an_unreadable_report_is_no_pass(judge, locked):
    report = judge(with_test(f"echo '{FAKE}' >/logs/verifier/ctrf.json; chmod 000 {locked}"))
    assert report.cause == (None if os.geteuid() == 0 else "unparsable"), "root reads it all the same"


@pytest.mark.parametrize("change", ["content", "mode", "new file", "gone", "link"])
def test_tests_that_change_while_they_run_give_no_verdict(judge, root, change):
    def meddle() -> None:
        while not (found := list(root.glob("*/*/work/begun"))):
            time.sleep(0.02)
        (script,) = found[0].parents[1].glob("private-*/test.sh")
        if change == "content":
            script.write_text(script.read_text() + "\n")
        elif change == "mode":
            script.chmod(0o777)
        elif change == "new file":
            (script.parent / "conftest.py").touch()
        else:
            script.unlink()
        if change == "link":
            script.symlink_to("/dev/null")
        found[0].with_name("go").touch()

    script = f"touch /app/begun; while [ ! -e /app/go ]; do sleep 0.02; done; echo '{FAKE}' >/logs/verifier/ctrf.json"
    with ThreadPoolExecutor(1) as beside:
        meddling = beside.submit(meddle)
        report = judge(with_test(script))
        meddling.result()
    assert (report.cause, report.outcome, report.assertions) == ("tests_changed", None, ())


def test_harbors_mode_has_its_files_its_variables_and_no_stale_reward(judge):
    task = with_test(
        'echo "{\\"reward\\": $LEVEL}" >/logs/verifier/reward.json; exit 3', verifier="harbor", variables=(("LEVEL", "1"),)
    )
    report = judge(task)
    assert (report.cause, report.outcome, report.resolved) == ("missing", True, True)
    stale = judge(with_test("true", verifier="harbor"), "mkdir -p logs/verifier /logs/verifier; echo 1 >/logs/verifier/reward.txt")
    assert (stale.cause, stale.outcome) == ("missing", None)


def test_an_exit_status_attests_nothing(judge):
    assert judge(with_test("exit 0", verifier="harbor")).outcome is None
    assert judge(with_test("exit 0")).outcome is None


def test_a_script_has_none_of_the_tasks_variables(judge):
    """With a PATH of the task's, the python3 that it starts could be one that the agent made."""
    assert "=unset=" in judge(with_test("echo =${LEVEL-unset}=", variables=(("LEVEL", "1"),))).detail

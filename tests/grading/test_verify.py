"""Verification end to end, in real sandboxes, also against agents that attack it."""

import asyncio
import dataclasses
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from t1x.grading.report import VerifierReport
from t1x.grading.reward import BinaryReward, Spent, TestCountReward
from t1x.grading.verifier import verify
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
def judge(request):
    """Runs an agent's commands, then the verifier."""
    root = Path(tempfile.mkdtemp(prefix="t1x-test-"))
    root.chmod(0o755)

    def run(task: Task, *commands: str) -> VerifierReport:
        async def trial() -> VerifierReport:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                host = request.param(root=root).build()
            try:
                lease = await host.create(task)
                for command in commands:
                    await lease.exec(command, 20)
                return await verify(lease, task)
            finally:
                await host.close()

        return asyncio.run(trial())

    run.isolated = request.param is BubblewrapSandbox
    yield run
    assert os.listdir(root) == [], "verification left something behind"
    shutil.rmtree(root)


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


@pytest.mark.parametrize(
    "attack",
    {
        "prewritten report": f"mkdir -p /logs/verifier; echo '{FAKE}' | tee /logs/verifier/ctrf.json ctrf.json /tmp/ctrf.json",
        "background rewriter": f"(trap '' TERM HUP; setsid bash -c \"while :; do for f in /logs/verifier/ctrf.json "
        f"../*/ctrf.json; do echo '{FAKE}' >\\$f; done; done\" >/dev/null 2>&1) & disown; sleep 0.1",
        "tests changed in advance": "mkdir -p /tests/lib; echo 'echo x' >/tests/test.sh; rm -rf /tests/*; chmod 777 /tests",
        "python replaced": "printf '#!/bin/sh\\nexit 0\\n' >python3; chmod +x python3; export PATH=$PWD:$PATH; "
        "python3() { :; }; export -f python3",
        "modules in the environment": "echo 'import os; os._exit(0)' >json.py; cp json.py sitecustomize.py; export PYTHONPATH=$PWD",
        "shell set-up": "echo 'exit 0' >env; export BASH_ENV=$PWD/env ENV=$PWD/env; cp env ~/.bashrc; cp env ~/.profile",
        "unreadable home": "chmod 000 ~ /tmp 2>/dev/null",
    }.items(),
    ids=lambda item: item[0],
)
def test_an_attack_gains_nothing(judge, attack):
    if not judge.isolated:
        pytest.skip("ProcessSandbox isolates nothing")
    report = judge(TASK, attack[1])
    assert report.cause is None, report.detail
    assert report.assertions == (("greeting", False), ("input kept", True))


def test_the_tests_can_not_be_modified_by_what_they_run(judge):
    if not judge.isolated:
        pytest.skip("ProcessSandbox isolates nothing")
    report = judge(with_test("echo x >/tests/test.sh; touch /tests/new; rm -f /tests/test.sh; chmod 777 /tests; ls /tests"))
    assert report.cause == "missing"
    assert report.detail.count("Read-only file system") == 4
    assert report.detail.endswith("test.sh")


def test_the_agent_never_sees_the_tests(judge):
    if not judge.isolated:
        pytest.skip("ProcessSandbox isolates nothing")
    listed = with_test("cat /app/seen")
    report = judge(listed, "ls -d /tests /logs >seen 2>&1; grep -rl app/seen /app /tmp /home /dev/shm >>seen 2>/dev/null")
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
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("locked", ["/logs/verifier/ctrf.json", "/logs/verifier"])
def test_an_unreadable_report_is_no_pass(judge, locked):
    report = judge(with_test(f"echo '{FAKE}' >/logs/verifier/ctrf.json; chmod 000 {locked}"))
    assert report.cause == (None if os.geteuid() == 0 else "unparsable"), "root reads it all the same"

"""The attack table: what gets marks from a judge as is usual in the field gets none from t1x, or is flagged.

Each attack is a wrong solution. Against the naive judge it must gain: full or partial marks, or a hang where that's the damage.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from attacks import ANSWER, ATTACKS, CHECKS, RIGHT, RUNNING, TASK
from naive import judge_naively
from open_folder import open_folder

from t1x.grading.report import VerifierReport
from t1x.grading.verifier import verify
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.task import Task, TaskFile

SOLVING = f"cat >sol.py <<'END'\n{RIGHT}END\nprintf {ANSWER!r} >out.txt"
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
FORBIDDEN = YAMA.exists() and YAMA.read_text().strip() != "0"


@pytest.fixture(scope="module")
def hardened():
    """Runs an agent's commands in t1x's sandbox, then its verifier."""
    with open_folder() as root, asyncio.Runner() as runner:
        host = BubblewrapSandbox(root=root).build()

        async def trial(task: Task, commands: str) -> VerifierReport:
            lease = await host.create(task)
            try:
                await lease.exec(commands, 20)
                return await verify(lease, task)
            finally:
                await lease.destroy()

        yield lambda task, commands: runner.run(trial(task, commands))
        runner.run(host.close())
        assert list(root.iterdir()) == [], "verification left something behind"


def as_script(task: Task) -> Task:
    files = (TaskFile("test.sh", b"exec python3 -I -S -B /tests/checks.py\n"), TaskFile("checks.py", CHECKS.encode()))
    return replace(task, verifier="script", tests=(*files, TASK.tests[1]), assertions=3)


def passes_nothing(report: VerifierReport) -> bool:
    return report.cause is None and report.passed == 0 and report.total > 0


SIMILAR = {
    "a pytest.ini with a plugin",
    "PYTHONPATH and PYTEST_PLUGINS",
    "a usercustomize in the home folder",
    "a process that rewrites the tests",
    "a FIFO in place of the answer",
    "a chain of links to the tests",
    "a program that changes the tests",
    "a module that is loaded by its path",
}
"""Each is a variant of another attack."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.ci) if name in SIMILAR else name for name in ATTACKS])
def test_an_attack_gains_from_a_naive_judge_and_nothing_from_t1x(name, hardened):
    attack = ATTACKS[name]
    with ThreadPoolExecutor(1) as beside:
        naive = beside.submit(judge_naively, attack.task, attack.commands, 2.5 if attack.hangs else 100.0, attack.races)
        report = hardened(attack.task, attack.commands)
    gained = naive.result().cause == "hangs" if attack.hangs else naive.result().full or naive.result().passed > 0
    assert gained or (attack.yama and FORBIDDEN), "no attack at all"
    assert not report.resolved
    if attack.flagged is None:
        assert passes_nothing(report), report
    else:
        assert (report.cause, report.outcome, report.assertions) == (attack.flagged, None, ()), report


SCRIPTED = [name for name, attack in ATTACKS.items() if attack.tests == RUNNING]


@pytest.mark.ci
@pytest.mark.parametrize("name", SCRIPTED)
def test_nor_from_a_script_that_confines_what_it_runs(name, hardened):
    attack = ATTACKS[name]
    report = hardened(as_script(attack.task), attack.commands)
    assert report.cause == "timeout" if attack.flagged else passes_nothing(report), report


def test_a_wrong_solution_without_an_attack_gets_nothing(hardened):
    naive = judge_naively(TASK, ":")
    assert (naive.full, naive.passed, naive.cause) == (False, 0, None)
    assert passes_nothing(hardened(TASK, ":"))
    assert passes_nothing(hardened(as_script(TASK), ":"))


def test_an_honest_solution_gets_full_marks(hardened):
    naive = judge_naively(TASK, SOLVING)
    assert (naive.full, naive.passed) == (True, 3)
    for task in (TASK, as_script(TASK)):
        report = hardened(task, SOLVING)
        assert report.cause is None, report
        assert (report.passed, report.total, report.resolved) == (3, 3, True)

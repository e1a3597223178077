"""Running a task's held-out verifier over what the agent left.

Invariants:
- every process of the trial is dead before the tests exist anywhere that it could have seen;
- the report's folder is new, empty and mounted after that; what the agent left can't be in it;
- the tests are the same after the verdict as before it, or there is none;
- b is attested only by pytest's judge (see `t1x.grading.judge`) and, as Harbor means it, by a reward file; an exit status
  attests nothing.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

from t1x.grading.ctrf import read_ctrf
from t1x.grading.harbor import REWARDS, read_harbor
from t1x.grading.pytest_judge import judge_command, read_record
from t1x.grading.report import VerifierReport, unusable
from t1x.grading.tests_folder import digest, write_tests
from t1x.sandbox.protocol import ExecResult, SandboxError, SandboxLease
from t1x.tasks.task import Task
from t1x.tasks.work_folder import LOGS, TESTS

REPORT_FOLDER = f"{LOGS}/verifier"
REPORT = "ctrf.json"
_SHOWN = 2000
"""Characters of the verifier's own output that go into the detail of an unusable report."""


async def verify(lease: SandboxLease, task: Task) -> VerifierReport:
    """Ends the agent's phase and judges its final state. Raises `SandboxError` where the sandbox itself fails."""
    await lease.stop()
    tests, logs = lease.private_folder(), lease.private_folder()
    try:
        write_tests(tests, task.tests)
    except OSError as error:
        raise SandboxError(f"the tests of task {task.name} can't be written: {error}") from error
    before = digest(tests)
    started = time.monotonic()
    result = await _run(lease, task, tests, logs)
    report = _read(result, task, logs)
    if digest(tests) != before:
        report = unusable("tests_changed", "the tests aren't what they were before the verifier ran")
    detail = report.detail
    if report.cause is not None:
        ended = f"; exit status {result.exit_code}" if result.exit_code is not None else ""
        detail += f"{ended}; it printed: {result.output[-_SHOWN:].strip() or 'nothing'}"
    seconds = time.monotonic() - started
    return replace(report, detail=detail, seconds=seconds, expected=task.assertions, baseline=task.baseline)


async def _run(lease: SandboxLease, task: Task, tests: Path, logs: Path) -> ExecResult:
    read_only, timeout = {tests: TESTS}, task.verifier_timeout
    if task.verifier == "pytest":
        judge = judge_command(task, TESTS)
        return await lease.run_fresh(judge.argv, read_only=read_only, writable={}, timeout=timeout, system=judge.system)
    script = ("/bin/bash", f"{TESTS}/test.sh")
    variables = dict(task.variables) if task.verifier == "harbor" else {}  # with a PATH of the task's, python3 could be the agent's
    return await lease.run_fresh(script, read_only=read_only, writable={logs: REPORT_FOLDER}, timeout=timeout, variables=variables)


def _read(result: ExecResult, task: Task, logs: Path) -> VerifierReport:
    record = read_record(result, task.assertions) if task.verifier == "pytest" else None
    if record is not None and record.cause == "in_process":
        return record  # whatever came after
    if result.timed_out:
        return unusable("timeout", f"the verifier ran longer than {task.verifier_timeout:g} s")
    if result.stopped:
        return unusable("crashed", f"the verifier was stopped by the sandbox's limit {result.stopped}")
    if record is not None:
        return record
    if task.verifier == "harbor":
        return read_harbor(logs, task.assertions)
    report = read_ctrf(logs / REPORT, task.assertions)
    if report.cause == "missing" and _killed(result.exit_code):
        return replace(report, cause="crashed", detail="the verifier was killed before it wrote a report")
    reward = next((name for name in REWARDS if os.path.lexists(logs / name)), None)
    if report.cause == "missing" and reward is not None:
        remedy = 'mode = "harbor" under [verifier] in task.toml reads it'
        return replace(report, detail=f"the verifier wrote {reward}, but no {REPORT}; {remedy}")
    return report


def _killed(exit_code: int | None) -> bool:
    """By a signal, as told by a sandbox or by a shell."""
    return exit_code is not None and (exit_code < 0 or exit_code > 128)

"""Running a task's held-out verifier over what the agent left.

Invariants:
- every process of the trial is dead before the tests exist anywhere that it could have seen;
- the report can only have been written by what `test.sh` ran: its folder is new, empty and mounted after that.
"""

import time
from dataclasses import replace
from pathlib import Path

from t1x.grading.ctrf import read_ctrf
from t1x.grading.report import VerifierReport
from t1x.sandbox.protocol import SandboxLease
from t1x.tasks.task import Task, TaskFile

TESTS = "/tests"
REPORT_FOLDER = "/logs/verifier"
REPORT = "ctrf.json"
_SHOWN = 2000
"""Characters of the verifier's own output that go into the detail of an unusable report."""


async def verify(lease: SandboxLease, task: Task) -> VerifierReport:
    """Ends the agent's phase and judges its final state. Raises `SandboxError` where the sandbox itself fails."""
    await lease.stop()
    tests, logs = lease.private_folder(), lease.private_folder()
    for file in task.tests:
        _write(tests, file)
    started = time.monotonic()
    result = await lease.run_fresh(
        ("/bin/bash", f"{TESTS}/test.sh"), read_only={tests: TESTS}, writable={logs: REPORT_FOLDER}, timeout=task.verifier_timeout
    )
    if result.timed_out:
        report = VerifierReport((), "timeout", f"the verifier ran longer than {task.verifier_timeout:g} s")
    else:
        report = read_ctrf(logs / REPORT, task.assertions)
    detail = report.detail
    if report.cause is not None:
        detail += f"; exit status {result.exit_code}; it printed: {result.output[-_SHOWN:].strip() or 'nothing'}"
    seconds = time.monotonic() - started
    return replace(report, detail=detail, seconds=seconds, expected=task.assertions, baseline=task.baseline)


def _write(folder: Path, file: TaskFile) -> None:
    target = folder / file.path
    assert target.is_relative_to(folder), f"{file.path} leads out of the tests' folder"
    assert ".." not in target.parts, f"{file.path} leads out of the tests' folder"
    for parent in reversed(target.relative_to(folder).parents[:-1]):
        (folder / parent).mkdir(exist_ok=True)
        (folder / parent).chmod(0o755)
    target.write_bytes(file.content)
    target.chmod(file.mode | 0o444)

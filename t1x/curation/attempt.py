"""One task, once: a sandbox, some commands, the verifier."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from t1x.grading.report import VerifierReport
from t1x.grading.verifier import verify
from t1x.sandbox.protocol import ExecResult, SandboxError, SandboxHost
from t1x.tasks.task import Task

SHOWN = 1000
"""Characters of the end of a run's output that a finding tells."""


class EnvironmentFault(Exception):
    """The sandbox with the task's environment can't be made."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What it came to."""

    report: VerifierReport
    creating: float
    """Seconds until the environment was there."""
    acting: float
    """Seconds of the commands."""
    trouble: str = ""
    """What went wrong in the commands, whatever the verifier said; empty where each exited with 0."""
    overran: bool = False
    """The commands took longer than the agent has."""


async def attempt(task: Task, commands: Sequence[str], host: SandboxHost) -> Attempt:
    """Runs the commands in a new sandbox, within the time that the agent has, and then the verifier. Without commands it's the
    untouched environment, which is also where an agent that only says it is done leaves it. Raises `EnvironmentFault`, and
    `SandboxError` where the sandbox fails later."""
    started = time.monotonic()
    try:
        lease = await host.create(task)
    except (SandboxError, ValueError) as error:
        raise EnvironmentFault(str(error)) from error
    try:
        ready = time.monotonic()
        trouble, overran = "", False
        for number, command in enumerate(commands, 1):
            left = task.agent_timeout - (time.monotonic() - ready)
            result = await lease.exec(command, max(left, 0.001))
            overran = result.timed_out
            if overran:
                trouble = _told(number, len(commands), f"ran out of the agent's {task.agent_timeout:g} s", result)
                break
            if result.exit_code != 0:
                trouble = _told(number, len(commands), _status(result), result)
        acted = time.monotonic()
        report = await verify(lease, task)
    finally:
        await lease.destroy()
    return Attempt(report, ready - started, acted - ready, trouble, overran)


def _status(result: ExecResult) -> str:
    if result.stopped:
        return f"stopped by the sandbox's limit {result.stopped}"
    return "ended the shell" if result.exit_code is None else f"exit status {result.exit_code}"


def _told(number: int, count: int, what: str, result: ExecResult) -> str:
    which = f"command {number} of {count}: " if count > 1 else ""
    return f"{which}{what}; it printed: {result.output[-SHOWN:].strip() or 'nothing'}"

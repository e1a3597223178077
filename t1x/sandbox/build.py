"""Making a task's environment in a new sandbox: its files and commands, in their order.

Invariants:
- a command has the folders, the limits and the lack of a network that the agent will have;
- nothing that a command started is alive when the next step begins.
"""

import re
import time

from t1x.sandbox.local_lease import LocalLease
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.trial_folder import TrialFolder
from t1x.tasks.task import Run, Task, TaskFile

_SCRIPT = 'mkdir -p -- "$1" && cd -- "$1" && exec /bin/sh -c "$2"'
_NETWORK = re.compile(
    r"\b(apt|apt-get|curl|wget|pip3?|pipx|uv|conda|npm|npx|yarn|pnpm|cargo|gem|git (clone|fetch|pull)|go (get|install))\s"
)
"""Commands that fetch something, as a rule."""
_SHOWN_COMMAND, _SHOWN_OUTPUT = 200, 2000
"""Characters in a message."""


async def build(task: Task, trial: TrialFolder, lease: LocalLease) -> None:
    """Raises `SandboxError` for a file that can't be written, and for a command that fails or isn't done within the task's
    `build_timeout` for all of them."""
    left = task.build_timeout
    for step in task.environment:
        if isinstance(step, TaskFile):
            try:
                trial.write(f"{task.workdir}/{step.path}", step.content, step.mode)
            except (OSError, ValueError) as error:
                raise SandboxError(f"the file {step.path} of task {task.name} can't be written: {error}") from error
        else:
            started = time.monotonic()
            await _run(task, step, lease, left)
            left = max(0.0, left - (time.monotonic() - started))


async def _run(task: Task, step: Run, lease: LocalLease, timeout: float) -> None:
    argv = ("/bin/sh", "-c", _SCRIPT, "sh", step.folder, step.command)
    what = f"task {task.name}: {step.place} {step.command[:_SHOWN_COMMAND]}"
    try:
        result = await lease.build(argv, dict(step.variables), timeout)
    except SandboxError as error:
        raise SandboxError(f"{what}: {error}") from error
    if result.exit_code == 0:
        return
    if result.timed_out:
        raise SandboxError(
            f"{what}: the commands of the environment take longer than {task.build_timeout:g} s together; "
            "raise build_timeout_sec under [environment] in task.toml"
        )
    ended = f"stopped by the sandbox's limit {result.stopped}" if result.stopped else f"exit status {result.exit_code}"
    printed = result.output.strip()[-_SHOWN_OUTPUT:] or "nothing"
    advice = (
        "; sandboxes on this machine have no network: install here what it would fetch, or COPY it"
        if _NETWORK.search(step.command + " ")
        else ""
    )
    raise SandboxError(f"{what}: {ended}{advice}; it printed: {printed}")

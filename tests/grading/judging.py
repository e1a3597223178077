"""An agent's commands and then its verifier, in a real sandbox."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from t1x.grading.report import VerifierReport
from t1x.grading.verifier import verify
from t1x.sandbox.protocol import Sandbox
from t1x.tasks.task import Task


def judging(kind: type[Sandbox], root: Path, **how: bool) -> Callable[..., VerifierReport]:
    """A function of a task and commands; each call has a host of its own, which is built as `how` says."""

    def judge(task: Task, *commands: str) -> VerifierReport:
        async def trial() -> VerifierReport:
            host = kind(root=root).build(**how)
            try:
                lease = await host.create(task)
                for command in commands:
                    await lease.exec(command, 20)
                return await verify(lease, task)
            finally:
                await host.close()

        return asyncio.run(trial())

    return judge

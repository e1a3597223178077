"""Experiments as processes of their own.

Invariants:
- at most so many at a time, begun in order; how one ends touches no other;
- when the call returns or is cancelled, every process has ended: they were asked to and waited for. Where this process is killed
  outright, they are told so by the system and end in order by themselves.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign import tied

PATIENCE = 120.0
"""Seconds that a process has to close its run after it was interrupted."""
_FAULT = "error: this is a fault in t1x"
"""How the last line begins where the line before it is the one that tells."""


@dataclass(frozen=True, slots=True)
class Job:
    """An experiment to run."""

    name: str
    config: Path
    """A resolved Gin file."""
    resume: bool = False
    """Whether it goes on with its run that was interrupted."""

    @property
    def log(self) -> Path:
        """Where what it says goes."""
        return self.config.with_suffix(".log")


@dataclass(frozen=True, slots=True)
class Ended:
    """How one ended."""

    job: Job
    code: int
    """Exit status, negative for a signal."""
    seconds: float

    @property
    def reason(self) -> str:
        """Why it failed, in one line."""
        said = last_line(self.job.log)
        if self.code >= 0:
            return said or f"exit code {self.code}"
        name = signal.Signals(-self.code).name
        memory = ", as the system does where memory runs out" if -self.code == signal.SIGKILL else ""
        return f"ended by {name}{memory}" + (f"; the last it said: {said}" if said else "")


async def run_all(jobs: Sequence[Job], at_once: int, ended: Callable[[Ended], None]) -> None:
    """Runs each job as `t1x run`, and calls `ended` for each."""
    waiting = list(reversed(jobs))

    async def work() -> None:
        while waiting:
            ended(await _run(waiting.pop()))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(jobs))):
            group.create_task(work())


async def _run(job: Job) -> Ended:
    begun = time.monotonic()
    with job.log.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, tied.__file__, str(os.getpid()), sys.executable, "-m", "t1x.cli", "run", str(job.config)),
            *(["--resume"] if job.resume else []),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        code = await process.wait()
    except BaseException:
        await _stop(process)
        raise
    return Ended(job, code, time.monotonic() - begun)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()


def last_line(log: Path) -> str:
    """The last line that tells how it ended."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    if len(lines) > 1 and lines[-1].startswith(_FAULT):
        return lines[-2]
    return lines[-1] if lines else ""

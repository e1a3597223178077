"""One attempt at one task, from lease to reward.

Invariants:
- the sandbox is destroyed and the engine's session released, however the trial ends;
- what fails in the sandbox, the engine or the verifier makes a trial invalid, and is never worth a reward of 0;
- so does the sandbox's remote deadline, whatever the trial does then;
- a cancelled trial keeps the turns it has.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from t1x.engine.protocol import Decoding, EngineError, EngineWorker
from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent
from t1x.grading.verifier import verify
from t1x.harness.harness import Harness
from t1x.rollout.cleanup import undisturbed
from t1x.rollout.records import Trial
from t1x.sandbox.leases import Lease, Leases, RemoteDeadlineError
from t1x.sandbox.protocol import SandboxError, SandboxLease
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn


class _Recorder:
    """The sink of one trial."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.transcript: list[tuple[str, str]] = []
        self.timings: dict[str, float] = {}
        self.last_phase = ""

    def turn(self, turn: Turn) -> None:
        self.turns.append(turn)

    def message(self, role: str, text: str) -> None:
        self.transcript.append((role, text))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        self.last_phase = name
        try:
            yield
        finally:
            self.timings[name] = time.perf_counter() - started


async def run_trial(
    task: Task,
    *,
    trial_id: str,
    host: Leases,
    engine: EngineWorker,
    tokenizer: ChatTokenizer,
    harness: Harness,
    stitch: Callable[[Sequence[Turn]], list[Trajectory]],
    reward: Reward | None,
    decoding: Decoding,
    seed_for: Callable[[int], int],
) -> Trial:
    """Runs a task once. `trial_id` is the engine's session too and must be unique among living trials; `seed_for(turn)` the random
    stream of a turn, `stitch(turns)` makes its trajectories. Without a `reward` the trial is not verified.

    Cancelling the asyncio task that runs it ends the trial in order and *returns* it, ended by `CANCELLED`; so give it a task
    of its own, as `rollout` does. Anything unexpected (`StitchingError`, a refused prompt) is raised after the clean-up."""
    record = _Recorder()
    lease: Lease | None = None
    report: VerifierReport | None = None
    worth: float | None = None
    trajectories: list[Trajectory] = []
    error = ""
    try:
        try:
            with record.phase("create"):
                lease = await host.create(task)
            record.timings |= {"wait": lease.waited, "create": record.timings["create"] - lease.waited}
            async with _remote_deadline(lease, record):
                with record.phase("agent"):
                    ended_by = await _agent(task, lease, engine, trial_id, tokenizer, harness, decoding, seed_for, record)
                if reward is not None:
                    with record.phase("verify"):
                        report = await verify(lease, task)
        finally:
            if lease is not None:
                with record.phase("destroy"):
                    await undisturbed(lease.destroy())
    except asyncio.CancelledError:
        ended_by = EndedBy.CANCELLED
    except RemoteDeadlineError as failure:
        ended_by, error = EndedBy.REMOTE_DEADLINE, str(failure)
    except SandboxError as failure:
        ended_by, error = EndedBy.SANDBOX_ERROR, str(failure)
    except EngineError as failure:
        ended_by, error = EndedBy.ENGINE_ERROR, str(failure)
    if ended_by.counts and reward is not None and report is not None and (error := reward.objection(report)):
        ended_by = EndedBy.VERIFIER_ERROR
    if ended_by.counts:
        if reward is not None and report is not None:
            worth = reward(report, _spent(record.turns))
            if not math.isfinite(worth):
                raise ValueError(f"trial {trial_id}: the reward is {worth}")
        trajectories = stitch(record.turns)
    return Trial(
        id=trial_id,
        task=task,
        turns=tuple(record.turns),
        ended_by=ended_by,
        report=report,
        reward=worth,
        trajectories=tuple(trajectories),
        transcript=tuple(record.transcript),
        timings=record.timings,
        error=error,
    )


@asynccontextmanager
async def _remote_deadline(lease: Lease, record: _Recorder) -> AsyncIterator[None]:
    """Ends what is done in it when the sandbox has lived for long enough. Raises `RemoteDeadlineError`."""
    deadline = asyncio.timeout_at(lease.ends_at)
    try:
        async with deadline:
            yield
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise RemoteDeadlineError(f"the trial reached its sandbox's remote_deadline in phase {record.last_phase!r}") from error


def _spent(turns: list[Turn]) -> Spent:
    return Spent(len(turns), sum(len(turn.completion.ids) for turn in turns))


async def _agent(
    task: Task,
    lease: SandboxLease,
    engine: EngineWorker,
    session: str,
    tokenizer: ChatTokenizer,
    harness: Harness,
    decoding: Decoding,
    seed_for: Callable[[int], int],
    record: _Recorder,
) -> EndedBy:
    """The agent's phase, under the task's deadline; frees the engine's cache before the verifier runs."""
    deadline = asyncio.timeout(task.agent_timeout)
    try:
        async with deadline:
            return await harness.run(
                task=task,
                sandbox=lease,
                engine=engine,
                tokenizer=tokenizer,
                decoding=decoding,
                seed_for=seed_for,
                session=session,
                sink=record,
            )
    except TimeoutError:
        if not deadline.expired():
            raise
        return EndedBy.AGENT_DEADLINE
    finally:
        await undisturbed(engine.release(session))

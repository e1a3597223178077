"""A rollout: many trials at once, and which of them make the batch.

Invariant: when `rollout` returns or raises, no task of it is running.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from t1x.rollout.cleanup import undisturbed
from t1x.rollout.cost import virtual_cost
from t1x.rollout.records import RolloutBatch, Trial
from t1x.rollout.scheduler import Begin, Cancel, Cancelled, Close, Event, Finished, Launch, Scheduler
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy

RunTrial = Callable[[str, Task], Awaitable[Trial]]
"""Trial id and task to trial; when cancelled it ends the trial in order and returns it, as `run_trial` does."""


async def rollout(
    trials: Mapping[str, Task],
    *,
    batch: int,
    scheduler: Scheduler,
    run: RunTrial,
    concurrency: int,
    group_size: int = 1,
    deterministic: bool = False,
    on_trial: Callable[[Trial], None] | None = None,
) -> RolloutBatch:
    """Runs `trials` (unique id to task, in the order of launching; as many as `scheduler.launches(batch)`; groups as in `Begin`),
    at most `concurrency` at a time, until the scheduler closes the batch and every cancelled trial is cleaned up. `deterministic`
    is the scheduler's. `on_trial` sees each as it comes out. What `run` raises is raised here, after every other trial was
    cancelled and cleaned up; so is a cancellation."""
    if len(trials) != scheduler.launches(batch):
        raise ValueError(f"{scheduler.launches(batch)} trials are launched for a batch of {batch}, got {len(trials)}")
    loop = asyncio.get_running_loop()
    machine = scheduler.build(batch, deterministic)
    slots = asyncio.Semaphore(concurrency)
    ended: asyncio.Queue[asyncio.Task[Trial]] = asyncio.Queue()
    running: dict[str, asyncio.Task[Trial]] = {}
    out: dict[str, Trial] = {}
    admitted: tuple[str, ...] = ()

    async def run_in_slot(trial_id: str) -> Trial:
        async with slots:
            return await run(trial_id, trials[trial_id])

    def step(event: Event) -> None:
        nonlocal admitted
        for action in machine.step(event, loop.time()):
            match action:
                case Launch(trial_id):
                    running[trial_id] = asyncio.create_task(run_in_slot(trial_id), name=trial_id)
                    running[trial_id].add_done_callback(ended.put_nowait)
                case Cancel(trial_id):
                    running[trial_id].cancel()
                case Close():
                    admitted = action.admitted

    try:
        step(Begin(tuple(trials), group_size))
        while running:
            task = await ended.get()
            trial_id = task.get_name()
            trial = _never_started(trial_id, trials[trial_id]) if task.cancelled() else task.result()
            del running[trial_id]
            out[trial_id] = trial
            if on_trial is not None:
                on_trial(trial)
            cancelled = trial.ended_by is EndedBy.CANCELLED
            cost = virtual_cost(trial.turns)
            step(Cancelled(trial_id) if cancelled else Finished(trial_id, trial.ended_by.counts, cost))
    finally:
        if running:
            for task in running.values():
                task.cancel()
            await undisturbed(_ended(running.values()))
    return RolloutBatch(
        admitted=tuple(out[trial_id] for trial_id in admitted),
        others=tuple(out[trial_id] for trial_id in trials if trial_id not in set(admitted)),
    )


async def _ended(tasks: Iterable[asyncio.Task[Trial]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _never_started(trial_id: str, task: Task) -> Trial:
    """A trial that was cancelled while it waited for its turn."""
    return Trial(
        id=trial_id, task=task, turns=(), ended_by=EndedBy.CANCELLED, report=None, reward=None, trajectories=(), transcript=()
    )

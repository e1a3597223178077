"""The worker of `SupervisedStart`: records demonstrations, then trains the policy on them."""

import asyncio
from collections.abc import Sequence

from t1x.campaign.assembly import Assembly, first
from t1x.campaign.progress import Phase
from t1x.campaign.start import SupervisedStart
from t1x.campaign.validity import failure
from t1x.grading.reward import BinaryReward, Reward
from t1x.rollout.demonstrate import demonstrate
from t1x.rollout.evaluation import evaluation_metrics
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy

LOGGED_EVERY = 10
"""Optimizer steps between two points of `sft/loss`."""


async def imitate(start: SupervisedStart, assembly: Assembly) -> None:
    """Logs the demonstrations' own resolved rate and `sft/loss` (nats a token)."""
    tasks = first(start.pool.build(), start.tasks)
    with assembly.progress.phase("recording demonstrations", len(tasks)) as phase:
        verified = await _record(start, assembly, tasks[: start.verified], 0, BinaryReward(), phase)
        others = await _record(start, assembly, tasks[start.verified :], len(verified), None, phase)
    whole = [trial for trial in (*verified, *others) if trial.ended_by is EndedBy.DONE]
    if not whole:
        raise failure(f"none of {len(tasks)} demonstrations came to its end", [*verified, *others])
    assembly.progress.say(f"{len(whole)} of {len(tasks)} demonstrations recorded by {start.demonstrations!r}")
    trajectories = [trajectory for trial in whole for trajectory in trial.trajectories]
    metrics = evaluation_metrics(verified)
    if "resolved_rate" in metrics:
        quality = {name: metrics[name] for name in ("resolved_rate", "resolved_rate_se") if name in metrics}
        assembly.tracked.metrics({f"demonstrations/{name}": value for name, value in quality.items()}, 0)
        assembly.progress.say(
            f"of the {int(metrics['valid'])} demonstrations that were verified {metrics['resolved_rate']:.0%} resolve their task"
        )
    with assembly.progress.phase("learning from demonstrations", start.fine_tuning.steps) as phase:

        def on_step(step: int, loss: float) -> None:
            _let_through_cancellation()
            if step % LOGGED_EVERY == 0:
                assembly.tracked.metrics({"sft/loss": loss}, step)
            phase.advance(note=f"loss {loss:.3f}")

        losses = start.fine_tuning.fit(assembly.policy, trajectories, on_step)
    assembly.progress.say(
        f"learned from demonstrations: loss {losses[0]:.3f} → {losses[-1]:.3f} nats a token in {len(losses)} steps"
    )


async def _record(
    start: SupervisedStart, assembly: Assembly, tasks: Sequence[Task], offset: int, reward: Reward | None, phase: Phase
) -> list[Trial]:
    commands = [start.demonstrations.commands(task, start.demonstrations.rng(offset + index)) for index, task in enumerate(tasks)]
    return await demonstrate(
        tasks,
        commands,
        host=assembly.host,
        tokenizer=assembly.tokenizer,
        harness=assembly.experiment.harness,
        stitcher=assembly.experiment.stitcher,
        reward=reward,
        concurrency=assembly.experiment.concurrency,
        on_trial=lambda _: phase.advance(),
    )


def _let_through_cancellation() -> None:
    """Called between steps that never await, so that Ctrl-C ends them. Raises `asyncio.CancelledError`."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError

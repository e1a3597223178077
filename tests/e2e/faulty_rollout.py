"""A rollout in which some trials meet a fault and others don't, with every part real but the policy, which plays a script."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leftovers import descriptors, processes_of

from t1x.engine.protocol import Decoding
from t1x.engine.scripted import ScriptedEngine
from t1x.grading.reward import TestCountReward
from t1x.harness.shell import ShellHarness
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.records import RolloutBatch, Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll
from t1x.rollout.trial import run_trial
from t1x.sandbox.leases import Leases
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Run, Task
from t1x.text.bundled import BundledTokenizer
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import TokenStitcher

tokenizer = BundledTokenizer().build()
POOL = SyntheticPool(split="demo", size=4).build()
TASK = POOL[0]
HARNESS = ShellHarness(
    max_turns=20, max_command_tokens=200, context_tokens=4000, observation_tokens=60, observation_tail=30, command_timeout=60
)
HEALTHY = 2
"""Trials without a fault in every rollout."""


@dataclass(frozen=True)
class Attempt:
    """A task and what an agent does on it."""

    task: Task
    commands: Sequence[str]


def reference(task: Task) -> list[str]:
    return [command for part in task.solution for command in part.commands]


@dataclass(frozen=True)
class Outcome:
    """What came of the trials that met the fault, of the others, and of all as numbers."""

    faulty: list[Trial]
    healthy: list[Trial]
    metrics: Mapping[str, float]
    batch: RolloutBatch


def play(
    root: Path,
    faulty: Sequence[Attempt],
    *,
    healthy: int = HEALTHY,
    harness: ShellHarness = HARNESS,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
    concurrency: int = 8,
    **fields: float,
) -> Outcome:
    """Runs the faulty attempts beside `healthy` reference solutions in sandboxes with these `fields` under the open folder `root`.
    Fails where anything is left of them, in the middle of the host's life and after it."""
    attempts = [*faulty, *(Attempt(POOL[i % len(POOL)], reference(POOL[i % len(POOL)])) for i in range(healthy))]
    trials = {f"t{i}": attempt.task for i, attempt in enumerate(attempts)}
    scripts = {f"t{i}": harness.script(attempt.commands, tokenizer) for i, attempt in enumerate(attempts)}

    async def sample(host: Leases) -> RolloutBatch:
        async def run(trial_id: str, task: Task) -> Trial:
            return await run_trial(
                task,
                trial_id=trial_id,
                host=host,
                engine=engine,
                tokenizer=tokenizer,
                harness=harness,
                stitch=lambda turns: TokenStitcher().stitch(trial_id, turns, tokenizer, None),
                reward=TestCountReward(),
                decoding=Decoding(1.0),
                seed_for=lambda turn: 0,
            )

        engine = ScriptedEngine(scripts)
        return await rollout(trials, batch=len(trials), scheduler=WaitAll(), run=run, concurrency=concurrency)

    async def main() -> tuple[RolloutBatch, Mapping[str, float]]:
        host = BubblewrapSandbox(root=root, **fields).build()
        (run_folder,) = os.listdir(root)
        empty = sorted(os.listdir(root / run_folder))
        try:
            with host.counting() as counts:
                beside = asyncio.ensure_future(meanwhile()) if meanwhile is not None else None
                batch = await sample(host)
                if beside is not None:
                    await beside
            assert host.living == 0
            assert sorted(os.listdir(root / run_folder)) == empty
            return batch, rollout_metrics(batch) | counts.metrics()
        finally:
            await host.close()

    before = descriptors()
    batch, metrics = asyncio.run(main())
    assert os.listdir(root) == []
    assert processes_of(root) == []
    assert descriptors() == before
    out = {trial.id: trial for trial in (*batch.admitted, *batch.others)}
    every = [out[f"t{i}"] for i in range(len(attempts))]
    return Outcome(every[: len(faulty)], every[len(faulty) :], metrics, batch)


def untouched(outcome: Outcome) -> None:
    """The trials without a fault came to what they always come to."""
    assert outcome.healthy
    for trial in outcome.healthy:
        assert (trial.ended_by, trial.error) == (EndedBy.DONE, "")
        assert trial.report.resolved
        assert trial.reward == trial.task.assertions / 20


def shown(trial: Trial) -> list[str]:
    """What the agent was shown of each command."""
    return [text for role, text in trial.transcript if role == "tool"]


def broken(task: Task, command: str = "echo no wood; exit 7") -> Task:
    """The task with an environment that can't be made."""
    return replace(task, environment=(*task.environment, Run(command, "/app", place="environment/Dockerfile:3: RUN")))

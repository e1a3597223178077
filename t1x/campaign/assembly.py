"""The living parts of a campaign, and how one trial is run with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t1x.campaign.campaign import Campaign
from t1x.campaign.progress import ProgressReport
from t1x.engine.protocol import EngineWorker
from t1x.model.transformer import MoeTransformer
from t1x.rollout.records import Trial
from t1x.rollout.rollout import RunTrial
from t1x.rollout.streams import stream
from t1x.rollout.trial import run_trial
from t1x.sandbox.protocol import SandboxHost
from t1x.tasks.pool import TaskPool
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer
from t1x.tracking.protocol import TrackedRun


@dataclass(slots=True)
class Assembly:
    """What the parts of a campaign's loop share."""

    campaign: Campaign
    tokenizer: ChatTokenizer
    host: SandboxHost
    pool: TaskPool
    """Training tasks."""
    suites: dict[str, TaskPool]
    """Tasks of each suite, by its name."""
    policy: MoeTransformer
    """Trained in place; the engine has weights of its own."""
    steps: int
    """Training steps that are due in all."""
    tracked: TrackedRun
    progress: ProgressReport

    def runner(self, engine: EngineWorker, purpose: str, step: int, temperature: float) -> RunTrial:
        """Runs trials of this campaign; see `trial_runner`."""
        return trial_runner(self.campaign, self.host, self.tokenizer, engine, purpose, step, temperature)


def trial_runner(
    campaign: Campaign,
    host: SandboxHost,
    tokenizer: ChatTokenizer,
    engine: EngineWorker,
    purpose: str,
    step: int,
    temperature: float,
) -> RunTrial:
    """Runs trials whose random streams depend on nothing but the campaign's seed, purpose, step, trial id and turn."""

    async def run(trial_id: str, task: Task) -> Trial:
        return await run_trial(
            task,
            trial_id=trial_id,
            host=host,
            engine=engine,
            tokenizer=tokenizer,
            harness=campaign.harness,
            stitcher=campaign.stitcher,
            reward=campaign.reward,
            temperature=temperature,
            seed_for=lambda turn: stream(campaign.seed, purpose, step, trial_id, turn),
        )

    return run


def named(purpose: str, step: int, tasks: Sequence[Task]) -> Mapping[str, Task]:
    """Trial ids to tasks, in order."""
    return {f"{purpose}-{step}-{index}": task for index, task in enumerate(tasks)}


def first(pool: TaskPool, count: int) -> list[Task]:
    """The first `count` tasks of a pool, or all where it has fewer."""
    return [pool[index] for index in range(min(count, len(pool)))]

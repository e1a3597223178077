"""The living parts of an experiment, and how one trial is run with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from t1x.campaign.campaign import Campaign
from t1x.campaign.deadlines import with_deadlines
from t1x.campaign.experiment import Experiment
from t1x.campaign.outcome import ScoreJournal
from t1x.campaign.progress import ProgressReport
from t1x.campaign.trajectory_store import TrajectoryStore
from t1x.engine.protocol import Decoding, EngineWorker
from t1x.harness.harness import Harness
from t1x.model.transformer import MoeTransformer
from t1x.rollout.records import Trial
from t1x.rollout.rollout import RunTrial
from t1x.rollout.streams import stream
from t1x.rollout.trial import run_trial
from t1x.sandbox.leases import Leases
from t1x.tasks.pool import TaskPool
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer
from t1x.tracking.protocol import TrackedRun
from t1x.trajectory.storage_folder import step_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What the parts of an experiment share."""

    experiment: Experiment
    tokenizer: ChatTokenizer
    host: Leases
    suites: Mapping[str, TaskPool]
    """Tasks of each suite, by its name."""
    policy: MoeTransformer
    """Changed in place; the engine has weights of its own."""
    tracked: TrackedRun
    journal: ScoreJournal
    progress: ProgressReport
    stored: TrajectoryStore
    """Takes the trials of each batch, and of each pass over a suite."""
    starts: Mapping[str, Path] = field(default_factory=dict)
    """By `CampaignStart.experiment`: the folder of that campaign's last weights."""

    def runner(self, engine: EngineWorker, purpose: str, step: int, decoding: Decoding, harness: Harness | None = None) -> RunTrial:
        """Runs trials of this experiment; see `trial_runner`."""
        return trial_runner(self.experiment, self.host, self.tokenizer, engine, purpose, step, decoding, harness)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAssembly(Assembly):
    """And what training needs beyond that."""

    experiment: Campaign
    pool: TaskPool
    """Training tasks."""
    steps: int
    """Training steps that are due in all."""


def trial_runner(
    experiment: Experiment,
    host: Leases,
    tokenizer: ChatTokenizer,
    engine: EngineWorker,
    purpose: str,
    step: int,
    decoding: Decoding,
    harness: Harness | None = None,
) -> RunTrial:
    """Runs trials whose random streams depend on nothing but the experiment's seed, purpose, step, trial id and turn; in the
    experiment's harness where none is given."""

    async def run(trial_id: str, task: Task) -> Trial:
        return await run_trial(
            with_deadlines(task, experiment),
            trial_id=trial_id,
            host=host,
            engine=engine,
            tokenizer=tokenizer,
            harness=harness or experiment.harness,
            stitch=lambda turns: experiment.stitcher.stitch(trial_id, turns, tokenizer, experiment.routing_layout),
            reward=experiment.reward,
            decoding=decoding,
            seed_for=lambda turn: stream(experiment.seed, purpose, step, trial_id, turn),
        )

    return run


def named(purpose: str, step: int | None, tasks: Sequence[Task], attempts: int = 1) -> Mapping[str, Task]:
    """Trial ids to tasks, in order; every first attempt comes before any second one. An id is the name of the file that keeps the
    trial, and a number; `step` as there."""
    return {
        f"{purpose}-{step_name(step)}-{index}" + (f".{attempt}" if attempt else ""): task
        for attempt in range(attempts)
        for index, task in enumerate(tasks)
    }


def first(pool: TaskPool, count: int | None) -> list[Task]:
    """The first `count` tasks of a pool; all for None or where it has fewer."""
    return [pool[index] for index in range(len(pool) if count is None else min(count, len(pool)))]

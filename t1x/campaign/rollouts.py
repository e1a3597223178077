"""Rollout batches of a campaign: which tasks, their trials, and what training sees of them.

Invariants:
- a warm-up has an order of tasks of its own, so that step n trains on the same tasks however long it was;
- every batch is audited; a token that isn't what its turn sampled stops the campaign, unless its stitcher is a baseline that makes
  such tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t1x.campaign.assembly import TrainingAssembly, named
from t1x.campaign.clock import Clock
from t1x.campaign.cursor import PoolCursor
from t1x.campaign.validity import causes
from t1x.engine.protocol import Decoding, EngineWorker
from t1x.rollout.demonstrate import demonstrate
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.records import RolloutBatch, Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.streams import stream
from t1x.tasks.demonstrations import Demonstrations
from t1x.tasks.task import Task
from t1x.training.batch import Batch
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.cut import fitted
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import StitchingError


@dataclass(frozen=True, slots=True)
class RolledBatch:
    """What a rollout gives to training."""

    batch: Batch | None
    """None where no trial carries a learning signal."""
    metrics: Mapping[str, float]
    causes: str
    """Why not, for a reader; empty where there is a batch."""
    trials: tuple[Trial, ...] = ()
    """The admitted ones and the invalid ones, for readers; a batch that was read from disk has none."""


class Rollouts:
    """Makes one rollout batch after the other."""

    def __init__(self, assembly: TrainingAssembly, engine: EngineWorker) -> None:
        self._assembly, self._engine = assembly, engine
        self._cursors = {
            purpose: PoolCursor(len(assembly.pool), stream(assembly.experiment.seed, "epochs", purpose))
            for purpose in ("warmup", "train")
        }

    async def roll(self, purpose: str, step: int) -> RolledBatch:
        """A batch for the warm-up or the training step `step`, by the engine's policy or the algorithm's demonstrator."""
        campaign, clock = self._assembly.experiment, Clock()
        attempts = campaign.algorithm.trials_per_task
        cursor = self._cursors[purpose]
        indices = cursor.take(campaign.scheduler.launches(campaign.batch) // attempts)
        tasks = [self._assembly.pool[index] for index in indices]
        trials = repeated(named(purpose, step, tasks), attempts)
        pool_index = dict(zip(trials, [index for index in indices for _ in range(attempts)], strict=True))
        with clock.measure("rollout"), self._assembly.host.counting() as sandboxes:
            if (demonstrations := campaign.algorithm.demonstrator) is not None:
                rolled = await self._demonstrated(trials, pool_index, demonstrations, f"{purpose} demonstrations {step}")
            else:
                rolled = await self._sampled(trials, purpose, step)
        if campaign.scheduler.returns_cancelled:
            cancelled = [trial.id for trial in rolled.others if trial.ended_by is EndedBy.CANCELLED]
            cursor.give_back(dict.fromkeys(pool_index[trial] for trial in cancelled))
        with clock.measure("audit"):
            droppable = campaign.stitcher.droppable
            found = sum((audit(each.turns, each.trajectories, each.id, droppable=droppable) for each in rolled.admitted), Audit())
        if found.violations and campaign.stitcher.faithful:
            kept = self._assembly.stored.store_now(purpose, step, _shown(rolled))
            raise StitchingError(
                f"{purpose} rollout {step}: {found.violations} positions or labels aren't what their turns captured, as "
                f"{type(campaign.stitcher).__name__} stitched them. {found.findings[0]}"
                + (f". `t1x audit {self._assembly.stored.run}` shows these trials" if kept else "")
            )
        self._assembly.stored.store(purpose, step, _shown(rolled))
        metrics = rollout_metrics(rolled) | found.metrics() | sandboxes.metrics() | clock.metrics()
        if not campaign.stitcher.faithful:
            rolled, lost = _fitted(rolled, campaign.model.longest_sample)
            metrics["fidelity/cut_loss_tokens"] = float(lost)
        return self._learnable(rolled, metrics, stream(campaign.seed, "order", purpose, step))

    def _learnable(self, rolled: RolloutBatch, metrics: dict[str, float], seed: int) -> RolledBatch:
        algorithm = self._assembly.experiment.algorithm
        usable = algorithm.usable(rolled.admitted)
        learned = sum(bool(trial.trajectories) for trial in usable)
        metrics |= {"rollout/usable": float(learned)} | algorithm.metrics(rolled.admitted)
        shown = _shown(rolled)
        if not learned:
            return RolledBatch(None, metrics, _useless(rolled), shown)
        batch = Batch.of(usable, seed)
        algorithm.check(batch)
        return RolledBatch(batch, metrics, "", shown)

    async def _sampled(self, trials: Mapping[str, Task], purpose: str, step: int) -> RolloutBatch:
        campaign = self._assembly.experiment
        with self._assembly.progress.phase(f"{purpose} rollout {step}", len(trials)) as phase:
            return await rollout(
                trials,
                batch=campaign.batch,
                group_size=campaign.algorithm.trials_per_task,
                scheduler=campaign.scheduler,
                run=self._assembly.runner(self._engine, purpose, step, Decoding(campaign.temperature)),
                concurrency=campaign.concurrency,
                on_trial=lambda _: phase.advance(),
                deterministic=campaign.deterministic,
            )

    async def _demonstrated(
        self, trials: Mapping[str, Task], pool_index: Mapping[str, int], demonstrations: Demonstrations, title: str
    ) -> RolloutBatch:
        campaign, tasks = self._assembly.experiment, list(trials.values())
        commands = [
            demonstrations.commands(task, demonstrations.rng(index)) for task, index in zip(tasks, pool_index.values(), strict=True)
        ]
        with self._assembly.progress.phase(title, len(trials)) as phase:
            recorded = await demonstrate(
                tasks,
                commands,
                host=self._assembly.host,
                tokenizer=self._assembly.tokenizer,
                harness=campaign.harness,
                stitcher=campaign.stitcher,
                reward=campaign.reward,
                concurrency=campaign.concurrency,
                on_trial=lambda _: phase.advance(),
            )
        valid = tuple(trial for trial in recorded if trial.ended_by.counts)
        return RolloutBatch(valid, tuple(trial for trial in recorded if not trial.ended_by.counts))

    def state(self) -> dict[str, Any]:
        """Where the walks through the pool stand."""
        return {purpose: cursor.state() for purpose, cursor in self._cursors.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from there."""
        for purpose, cursor in self._cursors.items():
            cursor.restore(state[purpose])


def _fitted(rolled: RolloutBatch, longest: int) -> tuple[RolloutBatch, int]:
    """The batch without what the model can't take of its samples, and how many loss tokens that costs."""
    fits = [fitted(trial.trajectories, longest) for trial in rolled.admitted]
    admitted = tuple(replace(trial, trajectories=tuple(found)) for trial, (found, _) in zip(rolled.admitted, fits, strict=True))
    return replace(rolled, admitted=admitted), sum(lost for _, lost in fits)


def repeated(trials: Mapping[str, Task], attempts: int) -> Mapping[str, Task]:
    """Each trial `attempts` times, one after the other, as `<trial>.<attempt>`; as it is where that's once."""
    if attempts == 1:
        return trials
    return {f"{trial}.{attempt}": task for trial, task in trials.items() for attempt in range(attempts)}


def _shown(rolled: RolloutBatch) -> tuple[Trial, ...]:
    """The trials that a reader may want to see."""
    return (*rolled.admitted, *(trial for trial in rolled.others if trial.ended_by.invalid))


def _useless(rolled: RolloutBatch) -> str:
    """Why nothing can be learned from a rollout."""
    if not rolled.admitted:
        return causes(rolled.others)
    silent = sum(not trial.trajectories for trial in rolled.admitted)
    if silent == len(rolled.admitted):
        return f"none of {silent} trials has sampled a token"
    return f"{len(rolled.admitted)} valid trials, {_rewards(rolled.admitted)}, of which the algorithm can learn from none"


def _rewards(trials: Sequence[Trial]) -> str:
    rewards = [trial.reward for trial in trials if trial.reward is not None]
    return f"with rewards from {min(rewards):g} to {max(rewards):g}" if rewards else "without rewards"

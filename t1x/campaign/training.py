"""One training step: a rollout batch becomes critic and actor updates.

Invariants:
- critic values and behaviour log-probabilities are taken before either network is updated, and the critic is updated first;
- a warm-up has an order of tasks of its own, so that step n trains on the same tasks however long it was;
- every batch is audited; a token that isn't what its turn sampled stops the campaign.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from t1x.campaign.assembly import TrainingAssembly, named
from t1x.campaign.cursor import PoolCursor
from t1x.campaign.validity import failure
from t1x.engine.protocol import Decoding, EngineWorker
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.records import RolloutBatch
from t1x.rollout.rollout import rollout
from t1x.rollout.streams import stream
from t1x.tasks.task import Task
from t1x.training.batch import Batch
from t1x.training.trainer import TrainerWorker
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.stitcher import StitchingError


class TrainingStep:
    """Makes one step after the other; `metrics` are those of a step, by MLflow name."""

    def __init__(self, assembly: TrainingAssembly, engine: EngineWorker, trainer: TrainerWorker) -> None:
        self._assembly, self._engine, self._trainer = assembly, engine, trainer
        self._algorithm = assembly.experiment.algorithm
        self._cursors = {
            purpose: PoolCursor(assembly.pool, stream(assembly.experiment.seed, "epochs", purpose))
            for purpose in ("warmup", "train")
        }

    async def warm_up_critic(self, index: int) -> dict[str, float]:
        """One rollout batch that updates only the critic."""
        clock = _Clock()
        batch, metrics, _ = await self._rollout("warmup", index, clock)
        with clock.measure("critic"):
            values = self._trainer.values(batch)
            _, returns = self._algorithm.advantages(batch, values)
            metrics |= self._trainer.update_critic(batch, values, returns)
        return metrics | clock.metrics()

    async def train(self, step: int) -> tuple[dict[str, float], RolloutBatch]:
        """One rollout batch that updates actor and, if there is one, critic; the new weights are published as version `step`."""
        clock = _Clock()
        router = self._assembly.experiment.router
        batch, metrics, rolled = await self._rollout("train", step, clock)
        values = None
        if self._algorithm.critic is not None:
            with clock.measure("critic"):
                values = self._trainer.values(batch)
        advantages, returns = self._algorithm.advantages(batch, values)
        metrics |= self._algorithm.metrics(rolled.admitted)
        with clock.measure("actor"):
            behaviour = self._trainer.log_probs(batch, router.behaviour)
        if values is not None:
            with clock.measure("critic"):
                metrics |= self._trainer.update_critic(batch, values, returns)
        with clock.measure("actor"):
            metrics |= self._trainer.update_actor(batch, advantages, behaviour, router.update)
            self._trainer.version = step
        with clock.measure("publish"):
            await self._engine.publish(step, self._trainer.weights())
        return metrics | clock.metrics(), rolled

    async def _rollout(self, purpose: str, step: int, clock: "_Clock") -> tuple[Batch, dict[str, float], RolloutBatch]:
        campaign = self._assembly.experiment
        attempts = self._algorithm.trials_per_task
        tasks = self._cursors[purpose].take(campaign.scheduler.launches(campaign.batch) // attempts)
        trials = repeated(named(purpose, step, tasks), attempts)
        with clock.measure("rollout"), self._assembly.progress.phase(f"{purpose} rollout {step}", len(trials)) as phase:
            rolled = await rollout(
                trials,
                batch=campaign.batch,
                group_size=attempts,
                scheduler=campaign.scheduler,
                run=self._assembly.runner(self._engine, purpose, step, Decoding(campaign.temperature)),
                concurrency=campaign.concurrency,
                deterministic=campaign.deterministic,
                on_trial=lambda _: phase.advance(),
            )
        if not rolled.admitted:
            wanted = "valid trial" if attempts == 1 else "group without an invalid trial"
            raise failure(f"{purpose} rollout {step} has no {wanted}", rolled.others)
        if not any(trial.trajectories for trial in rolled.admitted):
            raise failure(f"in {purpose} rollout {step} no trial has sampled a token", rolled.admitted)
        with clock.measure("audit"):
            found = sum((audit(trial.turns, trial.trajectories) for trial in rolled.admitted), Audit())
        if found.own_turn_violations:
            raise StitchingError(f"{purpose} rollout {step}: {found.own_turn_violations} tokens aren't what their turns sampled")
        batch = Batch.of(rolled.admitted, seed=stream(campaign.seed, "order", purpose, step))
        return batch, rollout_metrics(rolled) | found.metrics(), rolled


def repeated(trials: Mapping[str, Task], attempts: int) -> Mapping[str, Task]:
    """Each trial `attempts` times, one after the other, as `<trial>.<attempt>`; as it is where that's once."""
    if attempts == 1:
        return trials
    return {f"{trial}.{attempt}": task for trial, task in trials.items() for attempt in range(attempts)}


class _Clock:
    """Wall-clock seconds by phase; `time/step` is all of it."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - started

    def metrics(self) -> dict[str, float]:
        seconds = self._seconds | {"step": time.perf_counter() - self._started}
        return {f"time/{phase}": value for phase, value in seconds.items()}

"""The loop of a campaign: evaluate, start, evaluate, warm the critic up, train, evaluate.

Invariants:
- after each step that is due, all that the next one needs is in a checkpoint, so that a run that goes on from there makes the steps
  that it would have made;
- where training is one step ahead (staleness 1), batch n + 1 is sampled while batch n is trained on, from the weights before that
  update, and these are retained until batch n + 1 was used (report, section 12).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from t1x.campaign.assembly import TrainingAssembly
from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_store import Checkpoint, CheckpointStore, StoredNetwork
from t1x.campaign.clock import Clock
from t1x.campaign.evaluate import evaluate_all
from t1x.campaign.outcome import Outcome, Score, steps_by_number
from t1x.campaign.rollouts import RolledBatch, Rollouts
from t1x.campaign.stored_batch import batch_from_tree, batch_tree
from t1x.campaign.training import learn, learn_values
from t1x.engine.protocol import EngineWorker
from t1x.model.checkpoint import from_hf_config, hf_config, to_hf
from t1x.model.value import ValueModel
from t1x.rollout.cleanup import undisturbed
from t1x.rollout.streams import stream
from t1x.training.algorithm import Network
from t1x.training.trainer import TrainerWorker

Result = TypeVar("Result")


async def run_loop(assembly: TrainingAssembly, store: CheckpointStore, outcome: Outcome, restored: Checkpoint | None) -> None:
    """Runs the whole campaign, or what is left of it after a checkpoint. Raises what stops it; `outcome` then holds what there
    was."""
    campaign = assembly.experiment
    engine = campaign.engine.build(campaign.model, to_hf(assembly.policy), deterministic=campaign.deterministic)
    trainer: TrainerWorker | None = None
    try:
        if restored is None:
            campaign.start.check_harness(campaign.harness, assembly.tokenizer)
            due = [suite for suite in campaign.suites if suite.due(0, assembly.steps)]
            await evaluate_all(assembly, engine, outcome, None, due)
            await campaign.start.prepare(assembly)
        critic = _critic(assembly, fresh=restored is None)
        trainer = campaign.trainer.build(assembly.policy, critic, campaign.algorithm, assembly.steps)
        loop = _Loop(assembly, engine, trainer, critic, store, outcome)
        if restored is None:
            await engine.publish(0, trainer.weights())
            loop.checkpoint("start")
        else:
            await loop.restore(restored)
        await loop.run()
        store.finish()
    finally:
        if trainer is not None:
            trainer.close()
        await engine.close()


def _critic(assembly: TrainingAssembly, fresh: bool) -> ValueModel | None:
    """The value network, at its start where the campaign is."""
    campaign = assembly.experiment
    if campaign.algorithm.critic is None:
        return None
    critic = campaign.model.build_value(stream(campaign.seed, "critic") >> 1)
    if fresh and campaign.critic_start is None:
        critic.start_from(assembly.policy)
    elif fresh and campaign.critic_start is not None:
        campaign.critic_start.prepare_critic(critic, assembly)
    return critic


class _Loop:
    """A campaign whose networks are there."""

    def __init__(
        self,
        assembly: TrainingAssembly,
        engine: EngineWorker,
        trainer: TrainerWorker,
        critic: ValueModel | None,
        store: CheckpointStore,
        outcome: Outcome,
    ) -> None:
        self._assembly, self._engine, self._trainer, self._store, self._outcome = assembly, engine, trainer, store, outcome
        self._configs: dict[Network, dict[str, Any]] = {"policy": hf_config(assembly.policy)}
        if critic is not None:
            self._configs["critic"] = hf_config(critic)
        self._campaign = assembly.experiment
        self._rollouts = Rollouts(assembly, engine)
        self._warmups = self._steps = 0
        """Made so far."""
        self._pending: RolledBatch | None = None
        """The next step's batch, where it's there already."""

    async def run(self) -> None:
        """All that is left to do."""
        await self._evaluate()
        while self._assembly.steps and self._warmups < self._campaign.critic_warmup and not self._steps:
            await self._warm_up(self._warmups)
        with self._assembly.progress.phase("training", self._assembly.steps, done=self._steps) as phase:
            while self._steps < self._assembly.steps:
                metrics = await self._train(self._steps + 1)
                phase.advance(note=told(metrics))
                await self._evaluate()
        if self._steps:
            self._guard(self._steps)  # again: a run that it stopped at its last step has no step left to make

    async def _warm_up(self, index: int) -> None:
        clock = Clock()
        rolled = await self._rollouts.roll("warmup", index)
        metrics = dict(rolled.metrics)
        if rolled.batch is not None:
            metrics |= await in_thread(partial(learn_values, self._campaign, self._trainer, rolled.batch))
        metrics["time/step"] = clock.total
        self._warmups += 1
        self._assembly.tracked.metrics({f"warmup/{name}": value for name, value in metrics.items()}, index)
        self._assembly.progress.say(f"critic warm-up {self._warmups}/{self._campaign.critic_warmup}: {told(metrics)}")
        if self._warmups % self._campaign.checkpointing.every == 0:
            self.checkpoint(f"warmup-{self._warmups}")

    async def _train(self, step: int) -> dict[str, float]:
        """Makes a step; the new weights are published as version `step`."""
        clock, publishing = Clock(), Clock()
        rolled = self._pending or await self._rollouts.roll("train", step)
        metrics = dict(rolled.metrics)
        trained, self._pending = await self._learn(rolled, step)
        metrics |= trained
        self._trainer.version = step
        with publishing.measure("publish"):
            await self._engine.publish(step, self._trainer.weights())
        self._trainer.release(older_than=step - 1 if self._pending else step)
        self._steps = step
        metrics |= {**publishing.metrics(), "time/step": clock.total}
        self._told(step, metrics, rolled)
        checkpointing = self._campaign.checkpointing
        if step % checkpointing.every == 0 or step == self._assembly.steps or checkpointing.judges(self._due()):
            self.checkpoint(f"step-{step}")
        self._guard(step)
        return metrics

    async def _learn(self, rolled: RolledBatch, step: int) -> tuple[dict[str, float], RolledBatch | None]:
        """The update's metrics, and the next batch where it's sampled meanwhile."""
        ahead = None
        if self._campaign.staleness and step < self._assembly.steps:
            self._trainer.retain()
            ahead = asyncio.create_task(self._rollouts.roll("train", step + 1))
        try:
            metrics: dict[str, float] = {}
            if rolled.batch is not None:
                metrics = await in_thread(partial(learn, self._campaign, self._trainer, rolled.batch, step))
            return metrics, None if ahead is None else await ahead
        except BaseException:
            if ahead is not None:
                ahead.cancel()
                await undisturbed(_ended(ahead))
            raise

    def _told(self, step: int, metrics: dict[str, float], rolled: RolledBatch) -> None:
        outcome, progress = self._outcome, self._assembly.progress
        outcome.steps[step] = metrics
        if rolled.causes:
            outcome.causes[step] = rolled.causes
        if rolled.trials:
            outcome.transcripts, outcome.transcripts_of = list(rolled.trials), f"the batch of step {step}"
        warnings = self._campaign.guards.warnings(outcome.steps, step)
        self._assembly.tracked.metrics(metrics | self._campaign.guards.metrics(outcome.steps, step), step)
        nothing = f", nothing to learn from: {rolled.causes}" if rolled.causes else ""
        progress.say(f"step {step}/{self._assembly.steps}: {told(metrics)}{nothing}")
        for each in warnings:
            progress.say(f"warning at step {step}, {each.name}: {each.text}")

    def _guard(self, step: int) -> None:
        causes = self._outcome.causes
        if reason := self._campaign.guards.stop(self._outcome.steps, causes.get(step, "")):
            raise ValueError(reason)
        if step == self._assembly.steps and len(causes) == step:
            raise ValueError(
                f"nothing was learned: none of {step} steps had a trial to learn from; in the last one: {causes[step]}"
            )

    def _due(self) -> list[Any]:
        return [suite for suite in self._campaign.suites if suite.due(self._steps, self._assembly.steps)]

    async def _evaluate(self) -> None:
        """The suites that are due now."""
        await evaluate_all(self._assembly, self._engine, self._outcome, self._steps, self._due())
        judged = {score.suite: score.value for score in reversed(self._outcome.scores) if score.step == self._steps}
        for suite, value in judged.items():  # of a suite's passes the first
            self._store.scored(suite, self._name, value)

    @property
    def _name(self) -> str:
        return f"step-{self._steps}" if self._steps else "start"

    def checkpoint(self, name: str) -> None:
        """Keeps all that going on from here needs."""
        weights: dict[Network, Mapping[str, Any] | None] = {
            "policy": self._trainer.weights(),
            "critic": self._trainer.critic_weights(),
        }
        networks = {which: StoredNetwork(config, weights[which] or {}) for which, config in self._configs.items()}
        standing = {
            "warmups": self._warmups,
            "steps": self._steps,
            "rollouts": self._rollouts.state(),
            "history": {str(step): metrics for step, metrics in self._outcome.steps.items()},
            "causes": {str(step): text for step, text in self._outcome.causes.items()},
            "scores": [asdict(score) for score in self._outcome.scores],
            "log_bytes": self._assembly.tracked.position,
        }
        state = {"standing": standing, "trainer": self._trainer.state_dict(), "pending": _stored(self._pending)}
        self._assembly.stored.finish()
        self._outcome.checkpoint = self._store.save(Checkpoint(name, self._warmups + self._steps, networks, state))

    async def restore(self, checkpoint: Checkpoint) -> None:
        """Goes on from a checkpoint."""
        standing, networks = checkpoint.state["standing"], checkpoint.networks
        self._trainer.load_weights(networks["policy"].weights, networks["critic"].weights if "critic" in networks else None)
        self._trainer.load_state_dict(checkpoint.state["trainer"])
        self._warmups, self._steps = standing["warmups"], standing["steps"]
        self._rollouts.restore(standing["rollouts"])
        self._pending = _read(checkpoint.state["pending"])
        self._assembly.stored.go_on(self._warmups, self._steps + (self._pending is not None), self._steps)
        await self._engine.publish(self._steps, self._trainer.weights())


def check_fits(campaign: Campaign, checkpoint: Checkpoint) -> None:
    """Raises `ValueError` where a campaign that has changed trains other networks than a checkpoint of it holds."""
    trained = {"policy"} if campaign.algorithm.critic is None else {"policy", "critic"}
    if set(checkpoint.networks) != trained:
        raise ValueError(
            f"checkpoint {checkpoint.name} holds {' and '.join(checkpoint.networks)}, but algorithm "
            f"{type(campaign.algorithm).__name__} trains {' and '.join(sorted(trained))}; run it without --resume to begin anew"
        )
    if other := from_hf_config(checkpoint.networks["policy"].config).differences(campaign.model):
        raise ValueError(
            f"checkpoint {checkpoint.name} holds another model: {', '.join(other)}; run it without --resume to begin anew"
        )


def restore_outcome(outcome: Outcome, checkpoint: Checkpoint | None, journal: list[Score]) -> list[Score]:
    """What a run had come to at a checkpoint (None: none was made), with the passes that were made on that policy since, which it
    returns: they aren't in the part of the log that the checkpoint goes with."""
    if checkpoint is not None:
        standing = checkpoint.state["standing"]
        outcome.scores = [Score(**score) for score in standing["scores"]]
        outcome.steps, outcome.causes = steps_by_number(standing["history"]), steps_by_number(standing["causes"])
    at = None if checkpoint is None else checkpoint.state["standing"]["steps"]
    since = [score for score in journal if score.step == at and not outcome.has(*score.key)]
    outcome.scores += since
    return since


def _stored(rolled: RolledBatch | None) -> dict[str, Any] | None:
    if rolled is None:
        return None
    batch = None if rolled.batch is None else batch_tree(rolled.batch)
    return {"batch": batch, "metrics": dict(rolled.metrics), "causes": rolled.causes}


def _read(tree: dict[str, Any] | None) -> RolledBatch | None:
    if tree is None:
        return None
    return RolledBatch(tree["batch"] and batch_from_tree(tree["batch"]), tree["metrics"], tree["causes"])


async def in_thread(work: Callable[[], Result]) -> Result:
    """Does blocking work beside the event loop, which samples meanwhile; a cancellation waits for its end."""
    return await undisturbed(asyncio.to_thread(work))


async def _ended(task: asyncio.Task[Any]) -> None:
    await asyncio.wait({task})


def told(metrics: Mapping[str, float]) -> str:
    """A step in a line; what a step doesn't have is left out."""
    shown = {
        "rollout/reward_mean": "reward {:.3f}",
        "rollout/resolved_rate": "resolved {:.2f}",
        "rollout/turns_mean": "turns {:.1f}",
        "critic/explained_variance": "EV {:+.2f}",
        "actor/entropy": "entropy {:.2f}",
        "time/step": "{:.1f} s",
    }
    return ", ".join(text.format(metrics[name]) for name, text in shown.items() if name in metrics)

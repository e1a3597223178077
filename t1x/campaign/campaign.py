"""The root of a training experiment."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.experiment import Experiment
from t1x.campaign.guards import Guards, Monitor
from t1x.campaign.start import Start
from t1x.config import Role, Smoke
from t1x.model.router import FreeRouting, Router, RouterMode
from t1x.rollout.scheduler import Scheduler, WaitAll
from t1x.tasks.pool import Pool
from t1x.training.algorithm import Algorithm
from t1x.training.trainer import TorchTrainer, Trainer


class Campaign(Experiment):
    """Reinforcement learning of one policy on one pool of tasks, evaluated before, during and after it."""

    pool: Pool
    """Training tasks; each epoch walks through them in a seeded order of its own."""
    algorithm: Algorithm
    """How rewards become gradients."""
    critic_start: Start | None = None
    """The critic's first weights; the policy's own with a value head of zeros where None."""
    critic_warmup: Annotated[int, Role.SCALE, Field(ge=0), Smoke(1)] = 0
    """Rollout batches that update only the critic before the first step (report: N = 2 after a warm start, section 4.5)."""
    batch: Annotated[int, Role.SCALE, Field(ge=1), Smoke(4)]
    """Trials that make a batch (report: 512)."""
    steps: Annotated[int | None, Role.SCALE, Field(ge=0), Smoke(1)] = None
    """Most training steps; each is one rollout batch. 0 stops after the start's evaluation."""
    epochs: Annotated[float | None, Field(gt=0)] = None
    """Passes over the pool, counted in trained trials (so that groups cost as much): round(epochs × tasks / batch) steps. Where
    `steps` is set too, whichever ends first."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Sampling temperature of training rollouts; the trainer applies the same."""
    scheduler: Scheduler = WaitAll()
    """Which of the launched trials make the batch."""
    router: Router = FreeRouting()
    """Where the experts of the actor's passes come from."""
    trainer: Annotated[Trainer, Role.PLACEMENT] = TorchTrainer()
    """What trains actor and critic."""
    staleness: Literal[0, 1] = 0
    """σ, how many updates a batch's sampling weights lie behind: 0 samples and trains in turn, 1 samples the next batch while this
    one is trained on (report: 1, section 12.1). The first batch is never stale."""
    checkpointing: Annotated[Checkpointing, Role.PLACEMENT] = Checkpointing()
    """What is kept to go on from, and for how long."""
    guards: Annotated[Monitor, Role.PLACEMENT] = Guards()
    """What stops a run that goes nowhere, and what is warned of."""

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.steps is None and self.epochs is None:
            raise ValueError("how long it trains isn't said; set steps or epochs")
        return self

    @model_validator(mode="after")
    def _best_is_measured(self) -> Self:
        best, names = self.checkpointing.best, [suite.name for suite in self.suites]
        if best is not None and best not in names:
            raise ValueError(
                f"checkpointing.best names the suite {best!r}, but suites are {', '.join(names) or 'none'}; name one of "
                f"them or set it to None"
            )
        return self

    @model_validator(mode="after")
    def _critic_can_start(self) -> Self:
        if self.critic_start is not None and not self.critic_start.for_critic:
            raise ValueError(
                f"critic_start {type(self.critic_start).__name__} teaches a policy, and a critic has nothing to learn from it; set "
                f"it to None to take over the policy's decoder, or use @ScratchStart(), @CheckpointStart() or @CampaignStart()"
            )
        return self

    @model_validator(mode="after")
    def _critic_is_used(self) -> Self:
        idle = {"critic_start": (self.critic_start, None), "critic_warmup": (self.critic_warmup, 0)}
        for field, (value, unset) in idle.items():
            if self.algorithm.critic is None and value != unset:
                raise ValueError(f"{field} is set, but algorithm {type(self.algorithm).__name__} has no critic; set it to {unset}")
        return self

    @model_validator(mode="after")
    def _groups_are_whole(self) -> Self:
        size, algorithm = self.algorithm.trials_per_task, type(self.algorithm).__name__
        if size > 1 and not self.scheduler.whole_groups:
            raise ValueError(
                f"algorithm {algorithm} takes the {size} trials of a task together, but scheduler "
                f"{type(self.scheduler).__name__} may admit some of them only; use @WholeGroups()"
            )
        if self.batch % size:
            raise ValueError(
                f"a batch of {self.batch} trials can't be divided into the groups of {size} that algorithm {algorithm} takes; "
                f"set batch to a multiple of {size}, such as {math.ceil(self.batch / size) * size}"
            )
        return self

    @model_validator(mode="after")
    def _scheduler_is_deterministic(self) -> Self:
        if self.deterministic and (reason := self.scheduler.indeterminism()):
            raise ValueError(f"deterministic is set, but scheduler {type(self.scheduler).__name__}: {reason}")
        return self

    @model_validator(mode="after")
    def _reward_is_reported(self) -> Self:
        if self.reward.dense and not self.pool.per_assertion:
            raise ValueError(
                f"reward {type(self.reward).__name__} needs a record of each assertion, but pool "
                f"{type(self.pool).__name__} reports only pass or fail; use @BinaryReward() or another pool"
            )
        return self

    @model_validator(mode="after")
    def _replay_is_possible(self) -> Self:
        if RouterMode.FREE in (self.router.behaviour, self.router.update):
            return self
        if self.algorithm.demonstrator is not None:
            raise ValueError(
                f"router {type(self.router).__name__} replays the sampler's experts, but algorithm {type(self.algorithm).__name__} "
                f"learns from demonstrations, which have none; use @FreeRouting()"
            )
        if not self.model.routed:
            raise ValueError(
                f"router {type(self.router).__name__} replays experts, but model {type(self.model).__name__} has none; "
                f"use @FreeRouting()"
            )
        if not self.engine.returns_routing:
            raise ValueError(
                f"router {type(self.router).__name__} replays the sampler's experts, but engine "
                f"{type(self.engine).__name__} doesn't return them; use @FreeRouting() or another engine"
            )
        if self.trainer.load_balancing:
            raise ValueError(
                f"trainer {type(self.trainer).__name__} has load_balancing = {self.trainer.load_balancing:g}, which asks the "
                f"router to change the choices that router {type(self.router).__name__} replays; set load_balancing to 0 (report, "
                f"section 4.4)"
            )
        return self

    @model_validator(mode="after")
    def _trainer_fits(self) -> Self:
        if reason := self.trainer.objection(self.model):
            raise ValueError(f"trainer {type(self.trainer).__name__} and model {type(self.model).__name__}: {reason}")
        return self

    @property
    def training_devices(self) -> int:
        return self.trainer.devices

    @property
    def networks(self) -> set[str]:
        """Those that its finished runs have weights of."""
        return set(self.algorithm.keeps)

    def training_steps(self, tasks: int) -> int:
        """Steps on a pool of `tasks` tasks."""
        by_epochs = [max(1, round(self.epochs * tasks / self.batch))] if self.epochs is not None else []
        return min([*by_epochs, *([self.steps] if self.steps is not None else [])])

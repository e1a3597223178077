"""One update: a rollout batch changes the networks.

Invariant: critic values and behaviour log-probabilities are taken before either network is updated, and the critic is updated
first.
"""

from t1x.campaign.campaign import Campaign
from t1x.campaign.clock import Clock
from t1x.training.batch import Batch
from t1x.training.trainer import TrainerWorker


def learn(campaign: Campaign, trainer: TrainerWorker, batch: Batch, version: int) -> dict[str, float]:
    """Updates critic, if there is one, and actor, whose weights are of policy version `version` then. Gives the step's metrics."""
    algorithm, router, clock = campaign.algorithm, campaign.router, Clock()
    metrics: dict[str, float] = {}
    values = behaviour = None
    if algorithm.critic is not None:
        with clock.measure("critic"):
            values = trainer.values(batch)
    advantages, returns = algorithm.advantages(batch, values)
    if algorithm.actor.objective.off_policy:
        with clock.measure("actor"):
            behaviour = trainer.log_probs(batch, router.behaviour)
        advantages, corrected = algorithm.corrected(advantages, behaviour, batch)
        metrics |= corrected
    if values is not None:
        with clock.measure("critic"):
            metrics |= trainer.update_critic(batch, values, returns)
    with clock.measure("actor"):
        metrics |= trainer.update_actor(batch, advantages, behaviour, router.update)
    trainer.version = version
    return metrics | clock.metrics()


def learn_values(campaign: Campaign, trainer: TrainerWorker, batch: Batch) -> dict[str, float]:
    """Updates the critic only. Gives the warm-up's metrics."""
    clock = Clock()
    with clock.measure("critic"):
        values = trainer.values(batch)
        _, returns = campaign.algorithm.advantages(batch, values)
        metrics = trainer.update_critic(batch, values, returns)
    return metrics | clock.metrics()

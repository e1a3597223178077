"""Ranks give what one process gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from t1x.model.router import RouterMode
from t1x.parallel.plan import TorchPlan
from t1x.training.batch import Batch
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.training.trainer import TorchTrainer
from t1x.trajectory.records import VersionSpan

STEPS = 5
PLANS = [
    pytest.param(TorchPlan(data=2), id="2"),
    pytest.param(TorchPlan(data=2, fully_sharded=True), id="2-sharded"),
    pytest.param(TorchPlan(data=4), id="4", marks=pytest.mark.soak),
    pytest.param(TorchPlan(data=4, fully_sharded=True), id="4-sharded", marks=pytest.mark.soak),
]


@pytest.fixture
def make(config):
    """Makes a trainer of the same weights, small learning rates and clipped gradients."""
    made = []

    def make(plan=None):
        adam = Adam(lr=1e-3, clip_norm=0.1)
        critic = config.build_value(seed=1)
        torch.nn.init.normal_(critic.score.weight, std=0.1, generator=torch.Generator().manual_seed(2))
        ppo = PPO(actor_optimizer=adam, critic_optimizer=adam, minibatches=2, critic_epochs=2)
        spec = TorchTrainer(tokens_per_microbatch=64, plan=plan or TorchPlan())
        made.append(spec.build(config.build(seed=0), critic, ppo, steps=STEPS))
        return made[-1]

    yield make
    for trainer in made:
        trainer.close()


@pytest.fixture
def batches(make_batch):
    """Uneven ones: the first has one sample, so that most ranks have none, the second fewer than four ranks. From the third on the
    version before the last sampled them."""
    made = [make_batch(np.random.default_rng(step), samples=samples) for step, samples in enumerate((1, 3, 9, 14, 5))]
    return [sampled_by(max(0, step - 1), batch) for step, batch in enumerate(made)]


def sampled_by(version, batch):
    spans = [(VersionSpan(0, len(trajectory.token_ids), version),) for trajectory in batch.trajectories]
    made = [replace(trajectory, versions=span) for trajectory, span in zip(batch.trajectories, spans, strict=True)]
    return Batch(made, batch.rewards, batch.trials, batch.seed)


def step(trainer, batch, index):
    """One PPO step, one version behind."""
    trainer.retain()
    trainer.release(older_than=index - 1)
    values, behaviour = trainer.values(batch), trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
    advantages, returns = PPO.advantages(PPO.model_construct(gamma=0.9, lam=0.8, bootstrap="none"), batch, values)
    metrics = trainer.update_critic(batch, values, returns)
    metrics |= trainer.update_actor(batch, advantages, behaviour - 0.05, RouterMode.REPLAY_WITH_GRAD)
    trainer.version = index + 1
    return metrics, values, behaviour


def assert_close(found, expected):
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=0, msg=lambda said, name=name: f"{name}: {said}")


@pytest.mark.parametrize("plan", [pytest.param(PLANS[0].values[0], id="2", marks=pytest.mark.ci), *PLANS[1:]])
def test_ranks_give_the_losses_explained_variance_and_weights_of_one_process(make, batches, plan):
    one, several = make(), make(plan)
    for index, batch in enumerate(batches):
        (expected, *vectors), (found, *others) = step(one, batch, index), step(several, batch, index)
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
        for vector, other in zip(vectors, others, strict=True):
            np.testing.assert_allclose(other, vector, atol=1e-5)
    assert several.version == STEPS
    assert_close(several.weights(), one.weights())
    assert_close(several.critic_weights(), one.critic_weights())
    assert several.weights().keys() == one.weights().keys()


@pytest.mark.parametrize("plan", [pytest.param(PLANS[0].values[0], id="2", marks=pytest.mark.soak), *PLANS[1:]])
def test_ranks_go_on_from_another_trainers_state(make, batches, plan):
    """From one process to ranks and back: optimizers, retained weights and version."""
    one, several, last = make(), make(plan), make()
    for index in (0, 1):
        step(one, batches[index], index)
    one.retain()
    several.load_weights(one.weights(), one.critic_weights())
    several.load_state_dict(one.state_dict())
    assert several.version == 2
    last.load_weights(several.weights(), several.critic_weights())
    last.load_state_dict(several.state_dict())
    for (name, found), (where, expected) in zip(leaves(last.state_dict()), leaves(one.state_dict()), strict=True):
        assert name == where
        assert torch.equal(found, expected) if isinstance(expected, torch.Tensor) else found == expected
    expected, found = step(one, batches[2], 2), step(several, batches[2], 2)
    assert found[0] == pytest.approx(expected[0], rel=1e-5, abs=1e-5)
    assert_close(several.weights(), one.weights())


def leaves(tree, name=""):
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, f"{name}.{key}")
    else:
        yield name, tree


def test_an_error_in_training_reaches_the_caller_as_in_one_process(make, batches):
    trainers = make(), make(TorchPlan(data=2))
    said = []
    for trainer in trainers:
        with pytest.raises(ValueError, match=r"versions \[3\], of which \[3\] aren't retained") as caught:
            trainer.log_probs(sampled_by(3, batches[2]), RouterMode.FREE)
        said.append(str(caught.value))
    assert said[0] == said[1]

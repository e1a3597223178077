import copy
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from t1x.model.checkpoint import to_hf
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.training.batch import Batch
from t1x.training.grpo import GRPO
from t1x.training.objective import ClippedSurrogate, Losses, Objective
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.training.trainer import TorchTrainer
from t1x.trajectory.records import Trajectory, VersionSpan

ROUTINGS = [(RouterMode.FREE, RouterMode.FREE), (RouterMode.REPLAY_NO_GRAD, RouterMode.REPLAY_WITH_GRAD)]
"""Of the behaviour pass and the update."""


@pytest.fixture
def make_trainer(config):
    def make(budget=64, lr=1e-3, **algorithm):
        adam = Adam(lr=lr, clip_norm=1e9)
        critic = config.build_value(seed=1)
        torch.nn.init.normal_(critic.score.weight, std=0.1, generator=torch.Generator().manual_seed(2))
        ppo = PPO(actor_optimizer=adam, critic_optimizer=adam, **algorithm)
        return TorchTrainer(tokens_per_microbatch=budget).build(config.build(seed=0), critic, ppo)

    return make


def gradients(optimizer):
    """Of its first step: Adam's first moment is then (1 - β₁) times the gradient."""
    return [state["exp_avg"] / (1 - 0.9) for _, state in sorted(optimizer.state_dict()["adam"]["state"].items())]


def in_optimizer_order(network):
    return sorted(network.parameters(), key=lambda parameter: parameter.ndim <= 1)


def alone(trajectory, network):
    """The network over one sample without padding or selection."""
    return network(torch.tensor(trajectory.token_ids).long()[None])


def slow_logprobs(actor, trajectory, replay):
    """Of the loss tokens of one sample, one at a time."""
    rows = torch.tensor(np.concatenate([trajectory.routed_experts, trajectory.routed_experts[-1:]]))[None]
    with RoutingReplay(actor, rows) if replay else nullcontext():
        hidden = alone(trajectory, actor).hidden
    logits = actor.logits(hidden)[0] / trajectory.temperature
    positions = np.flatnonzero(trajectory.loss_mask)
    return torch.stack([logits[j - 1, int(trajectory.token_ids[j])] - torch.logsumexp(logits[j - 1], 0) for j in positions])


def slow_values(critic, trajectory):
    return torch.stack([alone(trajectory, critic)[0, j - 1] for j in np.flatnonzero(trajectory.loss_mask)])


@pytest.mark.parametrize("replay", [False, True])
def test_logprobs_are_those_of_each_sample_alone_at_its_temperature(make_trainer, make_batch, replay):
    trainer, batch = make_trainer(), make_batch(np.random.default_rng(0), temperature=0.7)
    mode = RouterMode.REPLAY_NO_GRAD if replay else RouterMode.FREE
    expected = torch.cat([slow_logprobs(trainer.actor, trajectory, replay) for trajectory in batch.trajectories])
    np.testing.assert_allclose(trainer.log_probs(batch, mode), expected.detach().numpy(), atol=1e-5)


def test_a_token_is_valued_before_it_is_seen(make_trainer, make_batch):
    trainer, batch = make_trainer(), make_batch(np.random.default_rng(0))
    expected = torch.cat([slow_values(trainer.critic, trajectory) for trajectory in batch.trajectories])
    np.testing.assert_allclose(trainer.values(batch), expected.detach().numpy(), atol=1e-5)
    last = batch.trajectories[-1]
    at = np.flatnonzero(last.loss_mask)[-1]
    changed = replace(last, token_ids=np.where(np.arange(len(last.token_ids)) == at, (last.token_ids + 1) % 61, last.token_ids))
    other = Batch([*batch.trajectories[:-1], changed], batch.rewards, batch.trials, batch.seed)
    assert trainer.values(other)[-1] == trainer.values(batch)[-1]


@pytest.mark.parametrize("replay", [False, True])
def test_actor_loss_and_gradient_are_those_of_eq_18_over_the_whole_batch(make_trainer, make_batch, replay):
    random = np.random.default_rng(3)
    trainer, batch = make_trainer(), make_batch(random, temperature=1.3)
    mode = RouterMode.REPLAY_WITH_GRAD if replay else RouterMode.FREE
    advantages = random.normal(size=batch.loss_tokens)
    reference = copy.deepcopy(trainer.actor)
    logprobs = torch.cat([slow_logprobs(reference, trajectory, replay) for trajectory in batch.trajectories])
    behaviour = logprobs.detach().double().numpy() + random.normal(scale=0.3, size=batch.loss_tokens)
    ratio, loss = (logprobs - torch.tensor(behaviour)).exp(), 0
    for r, a in zip(ratio, advantages, strict=True):
        loss = loss - torch.minimum(r * a, r.clamp(0.8, 1.2) * a) / batch.loss_tokens
    loss.backward()
    metrics = trainer.update_actor(batch, advantages, behaviour, mode)
    assert metrics["actor/loss"] == pytest.approx(loss.item(), abs=1e-6)
    assert metrics["actor/ratio_mean"] == pytest.approx(ratio.mean().item(), abs=1e-6)
    assert metrics["actor/clip_fraction"] == pytest.approx(((ratio - 1).abs() > 0.2).double().mean().item())
    norm = math.sqrt(sum(parameter.grad.square().sum().item() for parameter in reference.parameters()))
    assert metrics["actor/grad_norm"] == pytest.approx(norm, rel=1e-4)
    for found, parameter in zip(gradients(trainer.actor_optimizer), in_optimizer_order(reference), strict=True):
        np.testing.assert_allclose(found, parameter.grad, atol=1e-6)


def test_critic_loss_and_gradient_are_those_of_eq_17_over_the_whole_batch(make_trainer, make_batch):
    random = np.random.default_rng(4)
    trainer, batch = make_trainer(), make_batch(random)
    reference = copy.deepcopy(trainer.critic)
    values = torch.cat([slow_values(reference, trajectory) for trajectory in batch.trajectories])
    old = values.detach().double().numpy() + random.normal(scale=0.3, size=batch.loss_tokens)
    returns = random.normal(size=batch.loss_tokens)
    loss = 0
    for v, o, r in zip(values, old, returns, strict=True):
        loss = loss + torch.maximum((v - r) ** 2, (o + (v - o).clamp(-0.2, 0.2) - r) ** 2) / batch.loss_tokens
    loss.backward()
    metrics = trainer.update_critic(batch, old, returns)
    assert metrics["critic/loss"] == pytest.approx(loss.item(), abs=1e-6)
    assert metrics["critic/explained_variance"] == pytest.approx(1 - np.var(returns - old) / np.var(returns))
    for found, parameter in zip(gradients(trainer.critic_optimizer), in_optimizer_order(reference), strict=True):
        np.testing.assert_allclose(found, parameter.grad, atol=1e-6)


@pytest.mark.parametrize("budget", [1, 50, 10_000])
def test_no_result_depends_on_the_split_into_micro_batches(make_trainer, make_batch, budget):
    random = np.random.default_rng(5)
    batch = make_batch(random, samples=11)
    advantages = random.normal(size=batch.loss_tokens)
    results = []
    for tokens in (budget, 200):
        trainer = make_trainer(budget=tokens)
        values, logprobs = trainer.values(batch), trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
        metrics = trainer.update_critic(batch, values, values + advantages)
        metrics |= trainer.update_actor(batch, advantages, logprobs - 0.1, RouterMode.REPLAY_WITH_GRAD)
        results.append((values, logprobs, metrics, gradients(trainer.actor_optimizer) + gradients(trainer.critic_optimizer)))
    for found, expected in zip(results[0][:2], results[1][:2], strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)
    assert results[0][2] == pytest.approx(results[1][2], rel=1e-6, abs=1e-6)
    for found, expected in zip(results[0][3], results[1][3], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("behaviour", "update"), ROUTINGS)
@pytest.mark.parametrize("minibatches", [1, 3])
@pytest.mark.parametrize("budget", [1, 64, 10_000])
def test_version_skew_is_exactly_0_when_the_weights_are_those_that_sampled(
    make_trainer, make_batch, behaviour, update, minibatches, budget
):
    random = np.random.default_rng(6)
    trainer, batch = make_trainer(budget, lr=0.1, minibatches=minibatches, actor_epochs=2), make_batch(random, samples=14)
    old = trainer.log_probs(batch, behaviour)
    metrics = trainer.update_actor(batch, random.normal(size=batch.loss_tokens), old, update)
    assert metrics["mismatch/version_skew"] == 0.0
    assert metrics["mismatch/engine_gap"] == metrics["mismatch/logprob_gap"] == np.abs(old - batch.sampler_logprobs).mean()
    assert metrics["actor/kl"] > 0


def test_first_step_at_the_sampling_weights_has_ratio_1(make_trainer, make_batch):
    random = np.random.default_rng(7)
    trainer, batch = make_trainer(), make_batch(random)
    advantages = random.normal(size=batch.loss_tokens)
    metrics = trainer.update_actor(batch, advantages, trainer.log_probs(batch, RouterMode.FREE), RouterMode.FREE)
    assert (metrics["actor/ratio_mean"], metrics["actor/kl"], metrics["actor/clip_fraction"]) == (1.0, 0.0, 0.0)
    assert metrics["actor/loss"] == pytest.approx(-advantages.mean(), abs=1e-7)


def test_version_skew_sees_other_weights(make_trainer, make_batch):
    random = np.random.default_rng(8)
    trainer, batch = make_trainer(minibatches=2), make_batch(random)
    old = trainer.log_probs(batch, RouterMode.FREE)
    with torch.no_grad():
        trainer.actor.model.embed_tokens.weight.mul_(1.01)
    new = trainer.log_probs(batch, RouterMode.FREE)
    metrics = trainer.update_actor(batch, np.zeros(batch.loss_tokens), old, RouterMode.FREE)
    assert metrics["mismatch/version_skew"] == pytest.approx(np.abs(new - old).mean(), rel=1e-12)
    assert metrics["mismatch/version_skew"] > 0


def test_an_update_without_finite_gradients_is_skipped_and_counted(make_trainer, make_batch):
    trainer, batch = make_trainer(minibatches=3, critic_epochs=2), make_batch(np.random.default_rng(9))
    old, values = trainer.log_probs(batch, RouterMode.FREE), trainer.values(batch)
    before = [copy.deepcopy(list(network.parameters())) for network in (trainer.actor, trainer.critic)]
    wrong = np.full(batch.loss_tokens, np.nan)
    assert trainer.update_actor(batch, wrong, old, RouterMode.FREE)["actor/skipped_steps"] == 3
    assert trainer.update_critic(batch, values, wrong)["critic/skipped_steps"] == 6
    for network, old_weights in zip((trainer.actor, trainer.critic), before, strict=True):
        assert all(map(torch.equal, network.parameters(), old_weights))
    good = trainer.update_actor(batch, np.ones(batch.loss_tokens), old, RouterMode.FREE)
    assert good["actor/skipped_steps"] == 0
    assert math.isfinite(good["actor/grad_norm"])


def test_as_many_optimizer_steps_as_epochs_times_minibatches(make_trainer, make_batch):
    trainer, batch = make_trainer(minibatches=2, critic_epochs=3, actor_epochs=2), make_batch(np.random.default_rng(10))
    zeros = np.zeros(batch.loss_tokens)
    trainer.update_critic(batch, zeros, zeros + 1)
    trainer.update_actor(batch, zeros, zeros, RouterMode.FREE)
    assert (trainer.critic_optimizer.steps, trainer.actor_optimizer.steps) == (6, 4)


def test_returns_that_do_not_vary_leave_explained_variance_out(make_trainer, make_batch):
    trainer, batch = make_trainer(), make_batch(np.random.default_rng(11))
    values = trainer.values(batch)
    metrics = trainer.update_critic(batch, values, np.ones(batch.loss_tokens))
    assert not [name for name in metrics if "explained_variance" in name]


def test_a_restored_trainer_goes_on_bit_for_bit(make_trainer, make_batch):
    random = np.random.default_rng(12)
    batches = [make_batch(random) for _ in range(2)]
    advantages = [random.normal(size=batch.loss_tokens) for batch in batches]

    def step(trainer, index):
        batch, values = batches[index], trainer.values(batches[index])
        old = trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
        metrics = trainer.update_critic(batch, values, values + advantages[index])
        return metrics | trainer.update_actor(batch, advantages[index], old, RouterMode.REPLAY_WITH_GRAD)

    one = make_trainer(minibatches=2)
    step(one, 0)
    other = make_trainer(minibatches=2)
    other.load_weights(one.weights(), one.critic_weights())
    other.load_state_dict(one.state_dict())
    assert step(one, 1) == step(other, 1)
    assert all(torch.equal(a, b) for a, b in zip(one.actor.parameters(), other.actor.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(one.critic.parameters(), other.critic.parameters(), strict=True))


def test_weights_are_the_actors_by_hugging_face_name(make_trainer):
    trainer = make_trainer()
    expected = to_hf(trainer.actor)
    assert trainer.weights().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in trainer.weights().items())


class Bandit:
    """One token is sampled after one of four prompts and pays 1 where its id is even: on-policy, from the policy's own samples."""

    def __init__(self, trainer):
        self.trainer, self.random = trainer, np.random.default_rng(13)

    def sample(self, prompts):
        actor = self.trainer.actor
        with torch.no_grad():
            logits = actor.logits(actor(torch.tensor(prompts)[:, None]).hidden)[:, 0]
        logprobs = logits.double().log_softmax(-1).numpy()
        actions = [self.random.choice(len(row), p=np.exp(row) / np.exp(row).sum()) for row in logprobs]
        return np.array(actions), logprobs

    def pays(self):
        return np.exp(self.sample(np.arange(4))[1])[:, ::2].sum(axis=1).mean()

    def batch(self, prompts, step):
        def trajectory(prompt, action, logprob):
            mask = np.array([False, True])
            return Trajectory(
                np.array([prompt, action], np.int32), mask, np.array([0, logprob], np.float32), np.array([[[0, 1]] * 2], np.uint8),
                (VersionSpan(1, 2, 0),), (), 1.0,
            )  # fmt: skip

        actions, logprobs = self.sample(prompts)
        made = [trajectory(p, a, row[a]) for p, a, row in zip(prompts, actions, logprobs, strict=True)]
        return Batch(made, (actions % 2 == 0).astype(float), np.arange(len(prompts)), seed=step)


def test_ppo_learns_which_actions_pay(make_trainer):
    trainer = make_trainer(lr=1e-2, minibatches=2, critic_epochs=2)
    bandit = Bandit(trainer)
    before, gaps = bandit.pays(), []
    for step in range(30):
        batch = bandit.batch(np.arange(32) % 4, step)
        values, old = trainer.values(batch), trainer.log_probs(batch, RouterMode.FREE)
        advantages, returns = trainer.algorithm.advantages(batch, values)
        trainer.update_critic(batch, values, returns)
        gaps.append(trainer.update_actor(batch, advantages, old, RouterMode.FREE)["mismatch/logprob_gap"])
    assert before < 0.7
    assert bandit.pays() > 0.95
    assert max(gaps) < 1e-5
    assert trainer.values(batch).mean() > 0.7


def test_grpo_learns_which_actions_pay_without_a_critic(config):
    algorithm = GRPO(optimizer=Adam(lr=1e-2), group_size=8, minibatches=2)
    trainer = TorchTrainer(tokens_per_microbatch=64).build(config.build(seed=0), None, algorithm)
    assert trainer.state_dict().keys() == {"actor_optimizer", "version", "retained"}
    assert trainer.critic_weights() is None
    bandit = Bandit(trainer)
    before = bandit.pays()
    for step in range(30):
        batch = bandit.batch(np.arange(32) // 8, step)
        old = trainer.log_probs(batch, RouterMode.FREE)
        advantages, _ = algorithm.advantages(batch, None)
        trainer.update_actor(batch, advantages, old, RouterMode.FREE)
    assert trainer.actor_optimizer.steps == 60
    assert before < 0.7
    assert bandit.pays() > 0.95


def test_grpos_update_is_ppos_of_the_same_advantages(config, make_trainer, make_batch):
    ppo = make_trainer(actor_epochs=2, minibatches=2, objective=ClippedSurrogate(clip=0.1))
    algorithm = GRPO(optimizer=Adam(lr=1e-3, clip_norm=1e9), epochs=2, minibatches=2, objective=ClippedSurrogate(clip=0.1))
    grpo = TorchTrainer(tokens_per_microbatch=64).build(config.build(seed=0), None, algorithm)
    random = np.random.default_rng(14)
    batch = make_batch(random)
    advantages, old = random.normal(size=batch.loss_tokens), ppo.log_probs(batch, RouterMode.FREE)
    assert ppo.update_actor(batch, advantages, old, RouterMode.FREE) == grpo.update_actor(batch, advantages, old, RouterMode.FREE)


def of_versions(batch, versions):
    """The batch with one version a sample."""
    made = [
        replace(trajectory, versions=(VersionSpan(0, len(trajectory.token_ids), version),))
        for trajectory, version in zip(batch.trajectories, versions, strict=True)
    ]
    return Batch(made, batch.rewards, batch.trials, batch.seed)


def shake(network, seed):
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.02)


@pytest.mark.parametrize("mode", [RouterMode.FREE, RouterMode.REPLAY_NO_GRAD])
def test_behaviour_logprobs_are_of_the_version_that_sampled_and_the_actor_is_left_alone(make_trainer, make_batch, mode):
    trainer, batch = make_trainer(minibatches=2), make_batch(np.random.default_rng(15))
    each = []
    for version in (3, 4, 5):
        trainer.version = version
        shake(trainer.actor, version)
        trainer.retain()
        each.append(trainer.log_probs(of_versions(batch, [version] * 9), mode))
    assert np.abs(each[0] - each[1]).min() > 0
    trainer.release(older_than=4)
    before = copy.deepcopy(trainer.actor.state_dict())
    np.testing.assert_array_equal(trainer.log_probs(of_versions(batch, [4] * 9), mode), each[1])
    assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.actor.state_dict().items())
    with pytest.raises(ValueError, match=r"versions \[3\], of which \[3\] aren't retained.*at version 5, retained are \[4, 5\]"):
        trainer.log_probs(of_versions(batch, [3] * 9), mode)


def test_each_token_of_a_mixed_batch_is_of_the_version_that_sampled_it(make_trainer, make_batch):
    trainer, batch = make_trainer(mixed_versions="per_span"), make_batch(np.random.default_rng(19))
    each = []
    for version in (0, 1):
        trainer.version = version
        shake(trainer.actor, version)
        trainer.retain()
        each.append(trainer.log_probs(of_versions(batch, [version] * 9), RouterMode.REPLAY_NO_GRAD))
    halves = [
        replace(trajectory, versions=(VersionSpan(0, middle, 0), VersionSpan(middle, len(trajectory.token_ids), 1)))
        for trajectory in batch.trajectories
        for middle in [len(trajectory.token_ids) // 2]
    ]
    mixed = Batch(halves, batch.rewards, batch.trials, batch.seed)
    assert 0 < mixed.versions.mean() < 1
    found = trainer.log_probs(mixed, RouterMode.REPLAY_NO_GRAD)
    np.testing.assert_array_equal(found, np.where(mixed.versions == 0, *each))
    decoupled = make_trainer(mixed_versions="decoupled")
    decoupled.load_weights(trainer.weights(), None)
    np.testing.assert_array_equal(decoupled.log_probs(mixed, RouterMode.REPLAY_NO_GRAD), each[1])


def test_retained_weights_survive_a_restart(make_trainer, make_batch):
    batch = of_versions(make_batch(np.random.default_rng(16)), [0] * 9)
    trainer, other = make_trainer(), make_trainer()
    expected = trainer.log_probs(batch, RouterMode.FREE)
    trainer.retain()
    shake(trainer.actor, 1)
    trainer.version = 1
    other.load_weights(trainer.weights(), trainer.critic_weights())
    other.load_state_dict(trainer.state_dict())
    assert other.version == 1
    np.testing.assert_array_equal(other.log_probs(batch, RouterMode.FREE), expected)


class Reinforce(Objective):
    """-Â c."""

    off_policy = False

    def losses(self, logprobs, behaviour, advantages, samples):
        assert behaviour is None
        return Losses(-logprobs * advantages)


def test_an_objective_without_a_behaviour_policy_has_no_gap_and_no_ratio(make_trainer, make_batch):
    trainer, batch = make_trainer(objective=Reinforce()), make_batch(np.random.default_rng(17))
    expected = -np.mean(trainer.log_probs(batch, RouterMode.FREE))
    metrics = trainer.update_actor(batch, np.ones(batch.loss_tokens), None, RouterMode.FREE)
    assert metrics["actor/loss"] == pytest.approx(expected, abs=1e-6)
    assert metrics.keys() == {"actor/loss", "actor/entropy", "actor/grad_norm", "actor/lr", "actor/skipped_steps"}


def test_learning_rates_end_with_the_run(config, make_batch):
    falling = Adam.model_construct(lr=1.0, decay_to=0.1)
    ppo = PPO.model_construct(actor_optimizer=falling, critic_optimizer=falling, minibatches=2, critic_epochs=3)
    trainer = TorchTrainer().build(config.build(seed=0), config.build_value(seed=1), ppo, steps=5)
    assert trainer.actor_optimizer.total_steps == 5 * 2
    assert trainer.critic_optimizer.total_steps == 5 * 2 * 3
    zeros = np.zeros((batch := make_batch(np.random.default_rng(18))).loss_tokens)
    assert trainer.update_actor(batch, zeros, zeros, RouterMode.FREE)["actor/lr"] == pytest.approx(1 - 0.9 * 1 / 10)
    assert trainer.update_critic(batch, zeros, zeros)["critic/lr"] == pytest.approx(1 - 0.9 * 5 / 30)

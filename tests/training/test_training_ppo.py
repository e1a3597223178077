import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.training.batch import Batch
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO, CriticWarmup

ADAM = Adam(lr=1e-3)


def make_ppo(**fields):
    return PPO(actor_optimizer=ADAM, critic_optimizer=ADAM, **fields)


def slow_gae(values, gamma, lam, ends_with):
    """Eq. 16 of one trial whose last token leads to a payment of `ends_with`."""
    old = [*values, 0.0]
    delta = [gamma * old[j + 1] - old[j] + (ends_with if j == len(values) - 1 else 0.0) for j in range(len(values))]
    return [sum((gamma * lam) ** n * delta[j + n] for n in range(len(values) - j)) for j in range(len(values))]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.sampled_from([(1.0, 1.0), (0.97, 0.9), (1.0, 0.5), (0.8, 0.0)]))
def test_a_trial_that_was_cut_off_is_worth_what_the_critic_expected(make_ragged_batch, seed, discount):
    gamma, lam = discount
    whole = make_ragged_batch(seed)
    random = np.random.default_rng(seed)
    cut_off = random.random(len(whole.rewards)) < 0.5
    batch = Batch(whole.trajectories, whole.rewards, whole.trials, whole.seed, cut_off)
    values = random.normal(size=batch.loss_tokens)
    advantages, returns = make_ppo(gamma=gamma, lam=lam, bootstrap="value").advantages(batch, values)
    token_trials = np.repeat(batch.trials, batch.counts)
    for trial in np.unique(batch.trials):
        own = values[token_trials == trial].tolist()
        ends_with = gamma * own[-1] if cut_off[trial] else batch.rewards[trial]
        np.testing.assert_allclose(advantages[token_trials == trial], slow_gae(own, gamma, lam, ends_with), atol=1e-12)
    np.testing.assert_allclose(returns, advantages + values, atol=1e-12)


def test_by_default_a_trial_that_was_cut_off_has_its_reward(make_batch):
    random = np.random.default_rng(0)
    whole = make_batch(random, samples=6, trials=[0, 1, 1, 2, 3, 3])
    batch = Batch(whole.trajectories, whole.rewards, whole.trials, whole.seed, np.array([True, True, False, False]))
    _, returns = make_ppo().advantages(batch, random.normal(size=batch.loss_tokens))
    np.testing.assert_array_equal(returns, np.repeat(batch.rewards[batch.trials], batch.counts))


def test_being_cut_off_is_said_of_every_trial_or_none(make_batch):
    batch = make_batch(np.random.default_rng(1), samples=3)
    assert not batch.cut_off.any()
    assert batch.cut_off.shape == (3,)
    with pytest.raises(ValueError, match="3 rewards, but it's said of 2 trials"):
        Batch(batch.trajectories, batch.rewards, batch.trials, batch.seed, np.array([True, False]))


def test_a_critic_warm_up_is_ppo_that_keeps_the_critic(make_batch):
    warmup = CriticWarmup(actor_optimizer=ADAM, critic_optimizer=ADAM, lam=0.9)
    assert (warmup.keeps, make_ppo().keeps) == ({"critic"}, {"policy", "critic"})
    assert (warmup.actor, warmup.critic) == (make_ppo(lam=0.9).actor, make_ppo(lam=0.9).critic)
    batch = make_batch(np.random.default_rng(2))
    values = np.random.default_rng(3).normal(size=batch.loss_tokens)
    np.testing.assert_array_equal(warmup.advantages(batch, values), make_ppo(lam=0.9).advantages(batch, values))

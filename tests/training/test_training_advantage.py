from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.training.advantage import gae, group_relative
from t1x.training.batch import Batch
from t1x.training.grpo import GRPO
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO

ADAM = Adam(lr=1e-3)


def slow_gae(values, counts, rewards, trials, gamma, lam):
    """Eq. 16 as it stands: δ of every response token, then the sum over all later ones of its trial."""
    tokens_of = {}
    token = 0
    for count, trial in zip(counts, trials, strict=True):
        tokens_of.setdefault(trial, []).extend(range(token, token + count))
        token += count
    reward_of = dict(zip(trials, rewards, strict=True))
    advantages = np.zeros(token)
    for trial, tokens in tokens_of.items():
        old = [float(values[t]) for t in tokens] + [0.0]
        reward = [0.0] * (len(tokens) - 1) + [reward_of[trial]]
        delta = [reward[j] + gamma * old[j + 1] - old[j] for j in range(len(tokens))]
        for j, t in enumerate(tokens):
            advantages[t] = sum((gamma * lam) ** n * delta[j + n] for n in range(len(tokens) - j))
    return advantages, advantages + values


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (1.0, 0.95), (0.97, 1.0), (0.9, 0.6), (0.5, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("seed", range(5))
def test_gae_equals_the_sum_of_eq_16_on_ragged_trials_of_several_chunks(gamma, lam, seed):
    random = np.random.default_rng(seed)
    trials = random.integers(0, 6, 12)
    counts = random.integers(1, 9, 12)
    rewards = random.normal(size=6)[trials]
    values = random.normal(size=counts.sum())
    advantages, returns = gae(values, counts, rewards, trials, gamma, lam)
    expected_advantages, expected_returns = slow_gae(values, counts, rewards, trials, gamma, lam)
    np.testing.assert_allclose(advantages, expected_advantages, atol=1e-12)
    np.testing.assert_allclose(returns, expected_returns, atol=1e-12)


def test_no_reward_is_lost_over_turns_observations_and_padding(make_batch):
    """γ = λ = 1: every response token's return is its trial's reward, exactly, whatever the critic says."""
    random = np.random.default_rng(1)
    batch = make_batch(random, samples=20, trials=[0, 1, 1, 2, 3, 3, 3, *range(4, 17)], trailing=7)
    values = random.normal(scale=100, size=batch.loss_tokens)
    advantages, returns = PPO(actor_optimizer=ADAM, critic_optimizer=ADAM).advantages(batch, values)
    expected = np.repeat(batch.rewards[batch.trials], batch.counts)
    np.testing.assert_array_equal(returns, expected)
    np.testing.assert_array_equal(advantages, expected - values)


def test_discount_counts_response_tokens_across_observations(make_batch):
    """The reward reaches the token that is d response tokens before the last one as γ^d, however many observations lie between."""
    batch = make_batch(np.random.default_rng(2), samples=4, longest=9)
    _, returns = PPO(actor_optimizer=ADAM, critic_optimizer=ADAM, gamma=0.9, lam=1.0).advantages(batch, np.zeros(batch.loss_tokens))
    distance = np.concatenate([np.arange(count)[::-1] for count in batch.counts])
    np.testing.assert_allclose(returns, np.repeat(batch.rewards[batch.trials], batch.counts) * 0.9**distance, atol=1e-12)


def slow_group_relative(rewards, size, trials, counts):
    """A = (r - μ)/σ a group at a time, a token at a time."""
    advantages = []
    for trial, count in zip(trials, counts, strict=True):
        first = trial // size * size
        group = [float(rewards[other]) for other in range(first, first + size)]
        mean = sum(group) / size
        sigma = (sum((reward - mean) ** 2 for reward in group) / size) ** 0.5
        for _ in range(count):
            advantages.append(0.0 if len(set(group)) == 1 else (float(rewards[trial]) - mean) / sigma)
    return advantages


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_group_relative_advantages_on_ragged_groups(make_trajectory, size, seed):
    """Trials of several chunks, of unlike lengths, and some without a sample, whose reward counts all the same."""
    random = np.random.default_rng(seed)
    rewards = random.integers(0, 3, 6 * size) / 20
    trials = np.sort(random.integers(0, len(rewards), 3 * size))
    batch = Batch([make_trajectory(random, turns=int(random.integers(1, 5))) for _ in trials], rewards, trials, seed=0)
    advantages, returns = GRPO(optimizer=ADAM, group_size=size).advantages(batch, None)
    expected = slow_group_relative(rewards, size, trials.tolist(), batch.counts.tolist())
    np.testing.assert_allclose(advantages, expected, atol=1e-12)
    np.testing.assert_array_equal(returns, np.repeat(rewards[trials], batch.counts))


def test_a_group_without_spread_has_no_advantage_and_is_counted(make_trajectory):
    random = np.random.default_rng(0)
    rewards = np.array([0.1] * 3 + [0.1, 0.2, 0.3] + [0.7] * 3 + [0.0, 0.0, 1.0])
    batch = Batch([make_trajectory(random) for _ in rewards], rewards, np.arange(12), seed=0)
    algorithm = GRPO(optimizer=ADAM, group_size=3)
    advantages, _ = algorithm.advantages(batch, None)
    nothing = np.repeat([True] * 3 + [False] * 3 + [True] * 3 + [False] * 3, batch.counts)
    assert (advantages[nothing] == 0).all()
    assert advantages[~nothing].any()
    trials = [SimpleNamespace(reward=reward) for reward in rewards]
    assert algorithm.metrics(trials) == {"grpo/degenerate_groups": 0.5}


def test_groups_without_spread_stay_in_the_batch_while_another_has_some():
    algorithm = GRPO(optimizer=ADAM, group_size=2)
    trials = [SimpleNamespace(reward=reward) for reward in (0.1, 0.1, 0.0, 0.5)]
    assert list(algorithm.usable(trials)) == trials
    assert list(algorithm.usable(trials[:2])) == []
    assert list(algorithm.usable([])) == []


def test_the_mean_square_of_a_groups_advantages_is_1():
    advantages = group_relative(np.random.default_rng(1).normal(size=40), 8).reshape(-1, 8)
    np.testing.assert_allclose((advantages**2).mean(axis=1), 1)


@given(st.floats(-1e3, 1e3), st.integers(2, 9), st.integers(1, 4))
def test_equal_rewards_have_advantages_of_exactly_0(reward, size, groups):
    assert not group_relative(np.full(size * groups, reward), size).any()


def test_broken_groups_are_refused():
    with pytest.raises(AssertionError, match="7 rewards aren't whole groups of 2"):
        group_relative(np.zeros(7), 2)

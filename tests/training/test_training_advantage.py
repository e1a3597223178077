import numpy as np
import pytest

from t1x.training.advantage import gae
from t1x.training.algorithm import PPO


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
    advantages, returns = PPO().advantages(batch, values)
    expected = np.repeat(batch.rewards, batch.counts)
    np.testing.assert_array_equal(returns, expected)
    np.testing.assert_array_equal(advantages, expected - values)


def test_discount_counts_response_tokens_across_observations(make_batch):
    """The reward reaches the token that is d response tokens before the last one as γ^d, however many observations lie between."""
    batch = make_batch(np.random.default_rng(2), samples=4, longest=9)
    _, returns = PPO(gamma=0.9, lam=1.0).advantages(batch, np.zeros(batch.loss_tokens))
    distance = np.concatenate([np.arange(count)[::-1] for count in batch.counts])
    np.testing.assert_allclose(returns, np.repeat(batch.rewards, batch.counts) * 0.9**distance, atol=1e-12)

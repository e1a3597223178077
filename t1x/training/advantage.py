"""Advantages: generalised advantage estimation over response tokens (Eq. 16), and relative to a group (section 9.4).

Invariants:
- observations don't exist here. The successor of a response token is the trial's next response token, across observations and
  across the chunks of the trial; after the last one V = 0. With γ = λ = 1 every return is the trial's reward, exactly;
- a group whose rewards are equal has advantages of exactly 0.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def gae(
    values: npt.NDArray[np.floating], counts: Ints, rewards: Floats, trials: Ints, gamma: float, lam: float
) -> tuple[Floats, Floats]:
    """Advantages Â [M] and returns R̂ = Â + V_old [M] of the M loss tokens, sample-major.

    `values` [M] is V_old; `counts` [n] the loss tokens of each sample, `rewards` [n] the reward of its trial, `trials` [n] the
    trial it is a chunk of (chunks in the order of the batch). The reward sits on the trial's last response token.

    Computed as the λ-return R̂_j = r_j + γ((1-λ) V_{j+1} + λ R̂_{j+1}), which is Eq. 16 plus V_old, and exact where γ = λ = 1.
    """
    token_trials = np.repeat(trials, counts)
    order = np.argsort(token_trials, kind="stable")
    _, firsts, lengths = np.unique(token_trials[order], return_index=True, return_counts=True)
    token_rewards = np.repeat(rewards, counts)[order]
    longest_first = np.argsort(-lengths, kind="stable")
    lengths, ends = lengths[longest_first], (firsts + lengths)[longest_first]

    old = np.asarray(values, dtype=np.float64)[order]
    returns = np.empty_like(old)
    returns[ends - 1] = token_rewards[ends - 1]
    running = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0) + 1), side="right")
    for back in range(2, len(running)):
        now = ends[: running[back]] - back
        returns[now] = gamma * ((1 - lam) * old[now + 1] + lam * returns[now + 1])

    in_batch_order = np.empty_like(returns)
    in_batch_order[order] = returns
    return in_batch_order - values, in_batch_order


def group_relative(rewards: Floats, size: int) -> Floats:
    """A_i = (r_i - μ)/σ [t] of rewards [t] in groups of `size` that follow one another; 0 in a group without spread.

    σ is the population's (divisor G): DeepSeekMath (section 4.1.2) divides by the standard deviation of the G rewards themselves,
    without estimating another spread from them, and so the mean A² of a group is 1 whatever its size. The sample's σ (divisor
    G - 1), which some implementations take, would only scale all advantages by √((G - 1)/G)."""
    groups = _groups(rewards, size)
    equal = without_spread(rewards, size)[:, None]
    apart = groups - groups.mean(axis=1, keepdims=True)
    sigma = np.where(equal, 1.0, groups.std(axis=1, keepdims=True))
    return np.where(equal, 0.0, apart / sigma).reshape(-1)


def without_spread(rewards: Floats, size: int) -> npt.NDArray[np.bool_]:
    """[t / size]: whether all rewards of a group are equal. By comparison: the σ of equal rewards needn't round to 0."""
    groups = _groups(rewards, size)
    return np.asarray((groups == groups[:, :1]).all(axis=1))


def _groups(rewards: Floats, size: int) -> Floats:
    assert len(rewards) % size == 0, f"{len(rewards)} rewards aren't whole groups of {size}"
    return rewards.reshape(-1, size)

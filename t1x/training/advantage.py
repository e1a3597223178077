"""Generalised advantage estimation over response tokens (Eq. 16).

Invariant: observations don't exist here. The successor of a response token is the trial's next response token, across observations
and across the chunks of the trial; after the last one V = 0. With γ = λ = 1 every return is the trial's reward, exactly.
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

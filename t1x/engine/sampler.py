"""Tokens from logits.

Invariant: what is sampled depends on the request's seed, the position and the logits alone, not on who shares the batch.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seeds: npt.NDArray[np.uint64], positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """One number in [0, 1) a row: the counter-based stream of the row's seed, read at its position. 40 bits, so that a float64 sum
    of probabilities times it stays below the sum."""
    counter = _mix(seeds) + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return (_mix(counter) >> np.uint64(24)).astype(np.float64) * 2.0**-40


def cut(
    logits: Tensor, temperatures: npt.NDArray[np.float32], top_p: npt.NDArray[np.float64], top_k: npt.NDArray[np.int64]
) -> Tensor:
    """The logits [A, V] with -inf for what `Decoding` leaves out of a row: first all but the `top_k` most probable ids (0 is no
    limit), then, of the distribution that remains, all that come after `top_p` is reached. Of equally probable ids the lower comes
    first. Rows of temperature 0 stay as they are."""
    rows = np.flatnonzero((temperatures > 0) & ((top_p < 1) | (top_k > 0)))
    if not len(rows):
        return logits
    size = logits.shape[1]
    most = torch.from_numpy(np.where(top_k > 0, top_k, size)[rows]).unsqueeze(1)
    share = torch.from_numpy(np.where(top_p < 1, top_p, np.inf)[rows]).unsqueeze(1)
    tempered = logits[rows] / torch.from_numpy(temperatures[rows]).unsqueeze(1)
    ranked, order = tempered.sort(dim=-1, descending=True, stable=True)
    beyond = torch.arange(size) >= most
    probabilities = ranked.masked_fill(beyond, -torch.inf).softmax(-1, dtype=torch.float64)
    reached = probabilities.cumsum(-1) - probabilities >= share
    left_out = torch.zeros_like(beyond).scatter(1, order, beyond | reached)
    kept = logits.clone()
    kept[rows] = logits[rows].masked_fill(left_out, -torch.inf)
    return kept


def sample(
    logits: Tensor,
    temperatures: npt.NDArray[np.float32],
    uniform: npt.NDArray[np.float64],
    forced: npt.NDArray[np.int64] | None = None,
) -> tuple[Tensor, Tensor]:
    """Ids [A] int64 and log-probabilities [A] float32 from float32 logits [A, V], by inversion of the cumulative distribution. Rows
    of temperature 0 take the most probable id, with its log-probability at temperature 1. Where `forced` [A] isn't negative it is
    the id, whatever the distribution."""
    greedy = temperatures == 0
    if not (temperatures == 1).all():
        logits = logits / torch.from_numpy(np.where(greedy, np.float32(1), temperatures)).unsqueeze(1)
    logprobs = logits.log_softmax(-1)
    if greedy.all():
        ids = logprobs.argmax(-1, keepdim=True)
    else:
        cumulative = logprobs.exp().cumsum(-1, dtype=torch.float64)
        target = cumulative[:, -1:] * torch.from_numpy(uniform).unsqueeze(1)
        ids = torch.searchsorted(cumulative, target, right=True)
        if greedy.any():
            ids = torch.where(torch.from_numpy(greedy).unsqueeze(1), logprobs.argmax(-1, keepdim=True), ids)
    if forced is not None and (forced >= 0).any():
        instead = torch.from_numpy(forced).unsqueeze(1)
        ids = torch.where(instead >= 0, instead, ids)
    return ids.squeeze(1), logprobs.gather(1, ids).squeeze(1)

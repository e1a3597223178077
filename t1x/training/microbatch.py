"""Samples packed for one forward pass.

Invariant: every stream of a sample goes through the same offsets, and what is computed on a micro-batch goes back to the sample's
own place, so nothing depends on how samples were split.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from t1x.trajectory.records import Trajectory

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """b samples, right-padded to T positions. The last token of a sample is only predicted, never read, so T is the longest N - 1.
    Vectors [m] run over the kept positions in row-major order."""

    token_ids: Ints
    """[b, T]; 0 where padded."""
    real: npt.NDArray[np.bool_]
    """[b, T]: false where padded."""
    keep: npt.NDArray[np.bool_]
    """[b, T]: position j is kept iff token j+1 carries loss; its hidden state predicts and values token j+1."""
    targets: Ints
    """[m]: the token ids after the kept positions."""
    temperatures: npt.NDArray[np.float32]
    """[m]: the temperature of the sample that a kept position belongs to."""
    routing: npt.NDArray[np.integer] | None
    """[b, T, layers, k]; padding holds k distinct experts, rotated by position so that none is overloaded. None unless asked
    for."""
    samples: Ints
    """[m]: the row that a kept position stands in."""
    places: Ints
    """[m]: where the kept positions stand in flat vectors over all loss tokens."""


def split(lengths: Ints, indices: Ints, budget: int) -> list[Ints]:
    """Splits samples (`indices` into `lengths`) into micro-batches of at most `budget` padded tokens, longest first, so that little
    is padding. A sample longer than the budget is alone in its micro-batch."""
    by_length = indices[np.argsort(-lengths[indices], kind="stable")]
    parts, start = [], 0
    while start < len(by_length):
        size = max(1, budget // int(lengths[by_length[start]]))
        parts.append(by_length[start : start + size])
        start += size
    return parts


def pack(trajectories: Sequence[Trajectory], indices: Ints, offsets: Ints, experts: int | None = None) -> MicroBatch:
    """Packs the samples at `indices`; `offsets` [n] is where each sample's loss tokens begin in flat vectors. `experts`, the number
    of experts of a layer, asks for the routing."""
    samples = [trajectories[index] for index in indices]
    width = max(len(sample.token_ids) for sample in samples) - 1
    token_ids = np.zeros((len(samples), width), dtype=np.int64)
    keep = np.zeros((len(samples), width), dtype=np.bool_)
    routing = None
    if experts is not None:
        first = samples[0].routed_experts
        spare = _spare_rows(width, first.shape[2], experts, first.dtype)
        routing = np.broadcast_to(spare[None, :, None, :], (len(samples), width, *first.shape[1:])).copy()
    for row, sample in enumerate(samples):
        length = len(sample.token_ids) - 1
        token_ids[row, :length] = sample.token_ids[:-1]
        keep[row, :length] = sample.loss_mask[1:]
        if routing is not None:
            routing[row, :length] = sample.routed_experts
    counts = keep.sum(axis=1)
    return MicroBatch(
        token_ids=token_ids,
        real=np.arange(width) < np.array([len(sample.token_ids) - 1 for sample in samples])[:, None],
        keep=keep,
        targets=np.concatenate([sample.token_ids[sample.loss_mask] for sample in samples]).astype(np.int64),
        temperatures=np.repeat(np.array([sample.temperature for sample in samples], dtype=np.float32), counts),
        routing=routing,
        samples=np.repeat(np.arange(len(samples)), counts),
        places=np.concatenate([offset + np.arange(count) for offset, count in zip(offsets[indices], counts, strict=True)]),
    )


def _spare_rows(width: int, k: int, experts: int, dtype: npt.DTypeLike) -> npt.NDArray[np.integer]:
    """[width, k]: k distinct experts a position, each expert equally often."""
    return ((np.arange(width)[:, None] * k + np.arange(k)) % experts).astype(dtype)

"""Samples packed for one forward pass, one after the other without padding.

Invariant: every stream of a sample goes through the same offsets, and what is computed on a micro-batch goes back to the sample's
own place, so nothing depends on how samples were split.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from t1x.trajectory.records import Trajectory

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """b samples of N positions in all. The last token of a sample is only predicted, never read, so it has one position fewer than
    token ids. Vectors [m] run over the kept positions in order."""

    indices: Ints
    """[b]: which samples of the batch."""
    token_ids: Ints
    """[N]"""
    lengths: list[int]
    """[b]: positions of each sample."""
    keep: npt.NDArray[np.bool_]
    """[N]: a sample's position j is kept iff its token j+1 carries loss; its hidden state predicts and values token j+1."""
    targets: Ints
    """[m]: the token ids after the kept positions."""
    temperatures: npt.NDArray[np.float32]
    """[m]: the temperature of the sample that a kept position belongs to."""
    routing: npt.NDArray[np.integer]
    """[N, layers, k]: the experts that the sampler used."""
    samples: Ints
    """[m]: the sample of the micro-batch, from 0, that a kept position belongs to."""
    places: Ints
    """[m]: where the kept positions stand in flat vectors over all loss tokens."""


def split(lengths: Ints, indices: Ints, budget: int) -> list[Ints]:
    """Splits samples (`indices` into `lengths`) into micro-batches of at most `budget` tokens, longest first, so that samples of
    equal length are neighbours. A sample longer than the budget is alone in its micro-batch."""
    by_length = indices[np.argsort(-lengths[indices], kind="stable")]
    parts, start, tokens = [], 0, 0
    for at, index in enumerate(by_length):
        if at > start and tokens + lengths[index] > budget:
            parts.append(by_length[start:at])
            start, tokens = at, 0
        tokens += lengths[index]
    return [*parts, by_length[start:]] if len(by_length) else []


def pack(trajectories: Sequence[Trajectory], indices: Ints, offsets: Ints) -> MicroBatch:
    """Packs the samples at `indices`; `offsets` [n] is where each sample's loss tokens begin in flat vectors."""
    samples = [trajectories[index] for index in indices]
    counts = np.array([np.count_nonzero(sample.loss_mask) for sample in samples])
    return MicroBatch(
        indices=np.asarray(indices, dtype=np.int64),
        token_ids=np.concatenate([sample.token_ids[:-1] for sample in samples]).astype(np.int64),
        lengths=[len(sample.token_ids) - 1 for sample in samples],
        keep=np.concatenate([sample.loss_mask[1:] for sample in samples]),
        targets=np.concatenate([sample.token_ids[sample.loss_mask] for sample in samples]).astype(np.int64),
        temperatures=np.repeat(np.array([sample.temperature for sample in samples], dtype=np.float32), counts),
        routing=np.concatenate([sample.routed_experts for sample in samples]),
        samples=np.repeat(np.arange(len(samples)), counts),
        places=np.concatenate([offset + np.arange(count) for offset, count in zip(offsets[indices], counts, strict=True)]),
    )


def without_loss(micro: MicroBatch) -> MicroBatch:
    """The same pass of which nothing is kept."""
    none = slice(0, 0)
    return replace(
        micro,
        keep=np.zeros_like(micro.keep),
        targets=micro.targets[none],
        temperatures=micro.temperatures[none],
        samples=micro.samples[none],
        places=micro.places[none],
    )

"""Where each position of packed samples goes (report, section 12.3): Π = Π_SP ∘ pad_{τ·ν} ∘ Π_CP ∘ pad_1.

Invariant (5): token ids, masks, log-probabilities and routing rows go through one map of positions, which is computed once; no
stream is cut by itself. No trainer shards sequences yet: this waits for the first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.parallel.plan import MegatronPlan

Ints = npt.NDArray[np.int64]
Stream = npt.NDArray[Any]
Rank = tuple[int, int]
"""(context rank, tensor rank)"""
Padding = Callable[[int, int], npt.ArrayLike]
"""(first, n) to n rows for padding positions, which are counted from 0 over all ranks."""


def constant(value: float) -> Padding:
    """The same value at every padding position."""
    return lambda first, n: np.full(n, value)


@dataclass(frozen=True)
class Sharding:
    """Π for samples of so many tokens, packed into one sequence.

    - pad_1: a stream of N - 1 rows (row j goes with token j, the last token predicts nothing) gets a padding row N - 1.
    - Π_CP: each sample by itself is padded at its end to a multiple of 2κ, so that it falls into 2κ equal chunks; context rank r
      gets chunks r and 2κ - 1 - r, in this order, which gives causal attention equal work on every rank. What a rank gets of the
      samples stands one after the other.
    - pad_{τ·ν}: that is padded at its end to a multiple of τ·ν, with ν = `MegatronPlan.granularity`. It stands behind Π_CP, so it
      isn't part of any sample and moves no chunk.
    - Π_SP: tensor rank t gets the t-th of τ equal contiguous parts."""

    plan: MegatronPlan
    lengths: tuple[int, ...]
    """Tokens of each sample (N), at least 1."""

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise ValueError(f"a pack needs samples of at least one token, got {list(self.lengths)} tokens")

    @cached_property
    def map(self) -> Ints:
        """[κ, τ, n]: which position of the samples, one after the other, stands in a rank's shard; -1 is padding."""
        chunks = 2 * self.plan.context
        first, parts = 0, []
        for length in self.lengths:
            positions = np.full(-(-length // chunks) * chunks, -1, np.int64)
            positions[:length] = np.arange(first, first + length)
            halves = positions.reshape(chunks, -1)
            parts.append(np.concatenate([halves[: self.plan.context], halves[: self.plan.context - 1 : -1]], axis=1))
            first += length
        packed = np.concatenate(parts, axis=1)
        missing = -packed.shape[1] % (self.plan.tensor * self.plan.granularity)
        return np.pad(packed, ((0, 0), (0, missing)), constant_values=-1).reshape(self.plan.context, self.plan.tensor, -1)

    def shard(self, samples: Sequence[Stream], padding: Padding, rank: Rank) -> Stream:
        """[n, …]: what a rank gets of one stream of all samples, each [N, …] or, of routing, [N-1, …]. Raises `ValueError` where
        they have another number of rows."""
        short = self._short(samples)
        stands = self._stands(short)
        here = stands[rank]
        whole = np.concatenate(samples)
        shard = np.empty((len(here), *whole.shape[1:]), whole.dtype)
        shard[here] = whole[self._rows(short)[self.map[rank][here]]]
        before = ~stands.reshape(-1, len(here))[: rank[0] * self.plan.tensor + rank[1]]
        shard[~here] = padding(int(np.count_nonzero(before)), int(np.count_nonzero(~here)))
        return shard

    def unshard(self, shards: Mapping[Rank, Stream], short: bool = False) -> list[Stream]:
        """What `shard` was given, from the shards of all ranks; `short` where it was N - 1 rows a sample. Raises `ValueError` where
        a shard is missing or has another length."""
        contexts, tensors, n = self.map.shape
        ranks = [(context, tensor) for context in range(contexts) for tensor in range(tensors)]
        if wrong := [rank for rank in ranks if rank not in shards or len(shards[rank]) != n]:
            raise ValueError(f"un-sharding needs {n} rows of every rank; (context, tensor) = {wrong[0]} has not")
        stands = self._stands(short).reshape(-1)
        every = np.concatenate([shards[rank] for rank in ranks])
        kept = np.array(self.lengths) - short
        whole = np.empty((kept.sum(), *every.shape[1:]), every.dtype)
        whole[self._rows(short)[self.map.reshape(-1)[stands]]] = every[stands]
        return np.split(whole, np.cumsum(kept)[:-1])

    def _short(self, samples: Sequence[Stream]) -> bool:
        rows = [len(sample) for sample in samples]
        for short in (False, True):
            if rows == [length - short for length in self.lengths]:
                return short
        raise ValueError(f"samples of {list(self.lengths)} tokens need as many rows, or one fewer each, got {rows}")

    def _rows(self, short: bool) -> Ints:
        """[tokens]: where the row of a position stands in the samples' rows, one after the other."""
        return np.arange(sum(self.lengths)) - np.repeat(np.arange(len(self.lengths)), self.lengths) * short

    def _stands(self, short: bool) -> npt.NDArray[np.bool_]:
        """[κ, τ, n]: whether a row of a sample stands there; pad_1's is padding."""
        stands = self.map >= 0
        return stands & ~np.isin(self.map, np.cumsum(self.lengths) - 1) if short else stands

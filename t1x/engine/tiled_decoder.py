"""The policy over a key-value cache, computed so that a row's results don't depend on who shares the step.

The last bits of a product depend on the shape that it is computed in, and those of an element-wise function on whether an element
falls into the rest that is left of a vector register. So:

- rows of one token are computed in tiles of one fixed shape, filled up with rows that nobody reads; the last row is always such a
  one, so the rest falls on it;
- a row attends to its cache as far as its own length rounded up says, and the cache of each slot is aligned like that of any other;
- a longer row (a prompt) is a step of its own.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from t1x.engine.cached_decoder import CachedDecoder, Indices, Rows, mask, range_or_index
from t1x.model.qwen3_moe import Qwen3Moe

TILE = 32
"""Rows of a tile, one of them unread at least."""
_GRAIN = 64
"""Positions; what is read of a cache is this times a power of two, or all of it."""


class TiledDecoder(CachedDecoder):
    """See the module. A row's results depend on its slot's tokens and the weights alone, to the bit."""

    def __init__(self, model: Qwen3Moe, slots: int, context: int, dtype: torch.dtype) -> None:
        super().__init__(model, slots, -(-context // _GRAIN) * _GRAIN, dtype)

    def prepare(self, rows: Rows) -> tuple[Rows, ...]:
        single = int((rows.counts == 1).sum())
        starts = [*range(0, single, TILE - 1), *range(single, len(rows.slots))]
        return tuple(rows.part(start, end) for start, end in zip(starts, [*starts[1:], len(rows.slots)], strict=True))

    @torch.inference_mode()
    def step(self, token_ids: Indices, rows: Rows) -> tuple[Tensor, Tensor]:
        """One of the steps of `prepare`. The logits of a tile have `TILE` rows; those beyond `rows` mean nothing."""
        if len(token_ids) > len(rows.slots):
            return super().step(token_ids, rows)
        count = len(rows.slots)
        unread = (0, TILE - count)
        attend = _TileAttention(self.keys, self.values, rows)
        ids, positions = (torch.from_numpy(np.pad(each, unread, mode="edge")) for each in (token_ids, rows.starts))
        hidden, experts, _ = self.policy.model.run(ids, positions, attend)
        return self.policy.logits(self.policy.model.norm(hidden)), torch.stack(experts, 1)[:count]


class _TileAttention:
    """Attention of one tile: rows that read equally far together."""

    def __init__(self, keys: Tensor, values: Tensor, rows: Rows) -> None:
        self.keys, self.values, self.count = keys, values, len(rows.slots)
        context = keys.shape[2]
        self.written = torch.from_numpy(rows.slots * context + rows.starts)
        reaches = np.array([reach(int(end), context) for end in rows.ends])
        self.groups: list[tuple[Tensor, slice | Tensor, int, Tensor]] = []
        for each in np.unique(reaches):
            members = np.flatnonzero(reaches == each)
            visible = np.arange(each) < rows.ends[members, None]
            read = range_or_index(rows.slots[members])
            self.groups.append((torch.from_numpy(members), read, int(each), mask(visible, keys.dtype)[:, None, None]))

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self.keys[layer], self.values[layer]
        keys.flatten(0, 1).index_copy_(0, self.written, k[: self.count])
        values.flatten(0, 1).index_copy_(0, self.written, v[: self.count])
        out = torch.zeros_like(q)
        by_key_head = q.unflatten(1, (keys.shape[2], -1))
        for members, read, until, visible in self.groups:
            k, v = (x[read, :until].transpose(1, 2) for x in (keys, values))
            attended = F.scaled_dot_product_attention(by_key_head.index_select(0, members), k, v, attn_mask=visible)
            out.index_copy_(0, members, attended.flatten(1, 2))
        return out


def reach(end: int, context: int) -> int:
    """How far a row that ends at `end` reads."""
    return min(context, _GRAIN << max(0, -(-end // _GRAIN) - 1).bit_length())

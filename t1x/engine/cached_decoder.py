"""The policy over a key-value cache.

Invariant: after `step`, the cache holds the keys and values of every position below a row's end, as one full pass over the row's
tokens would have computed them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from t1x.model.checkpoint import load_hf
from t1x.model.moe import MoeLayer
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.transformer import MoeTransformer

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """What one step computes: positions [start, end) of each slot. Rows of one token come first."""

    slots: Indices
    starts: Indices
    ends: Indices

    @property
    def counts(self) -> Indices:
        """Tokens a row."""
        return self.ends - self.starts

    def part(self, start: int, end: int) -> "Rows":
        """Rows [start, end) of these."""
        return Rows(self.slots[start:end], self.starts[start:end], self.ends[start:end])

    def flat(self) -> tuple[Indices, Indices]:
        """Slot and position of every token, row after row, [N] each."""
        counts = self.counts
        before = np.cumsum(counts) - counts
        return np.repeat(self.slots, counts), np.arange(counts.sum()) + np.repeat(self.starts - before, counts)


class CachedDecoder:
    """A policy of its own weights with a cache [layers, slots, context, Hkv, d] of keys and one of values."""

    def __init__(self, model: Qwen3Moe, slots: int, context: int, dtype: torch.dtype) -> None:
        self.config = model
        with torch.inference_mode():
            self.policy = MoeTransformer(model).to(dtype)
            for module in self.policy.modules():
                if isinstance(module, nn.Linear):
                    module.weight.data = _inputs_first(module.weight)
                elif isinstance(module, MoeLayer):
                    module.gate_up.data = _inputs_first(module.gate_up)
            shape = model.num_hidden_layers, slots, context, model.num_key_value_heads, model.head_dim
            self.keys, self.values = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over weights by Hugging Face name; the cache is then worthless."""
        with torch.inference_mode():
            load_hf(self.policy, weights)

    @torch.inference_mode()
    def step(self, token_ids: Indices, rows: Rows) -> tuple[Tensor, Tensor]:
        """Computes `token_ids` [N] of `rows`; gives the float32 logits [rows, V] after each row's last token and the experts
        [N, layers, k] int64."""
        slots, positions = rows.flat()
        attend = _Attention(self.keys, self.values, rows, torch.from_numpy(slots), torch.from_numpy(positions))
        hidden, experts, _ = self.policy.model.run(torch.from_numpy(token_ids), torch.from_numpy(positions), attend)
        if len(slots) > len(rows.slots):
            hidden = hidden.index_select(0, torch.from_numpy(np.cumsum(rows.counts) - 1))
        return self.policy.logits(self.policy.model.norm(hidden)), torch.stack(experts, 1)

    def prepare(self, rows: Rows) -> tuple[Rows, ...]:
        """The steps that `rows` are computed in."""
        return (rows,)


def _inputs_first(weight: Tensor) -> Tensor:
    """The same weight [..., outputs, inputs] with its inputs outermost in memory: multiplications by few rows are twice as fast."""
    return weight.movedim(-1, 0).contiguous().movedim(0, -1)


class _Attention:
    """Attention of one step: rows of one token together, straight on the cache; longer rows together, padded to the longest."""

    def __init__(self, keys: Tensor, values: Tensor, rows: Rows, slots: Tensor, positions: Tensor) -> None:
        self.keys, self.values = keys, values
        self.written = slots * keys.shape[2] + positions
        self.single = int((rows.counts == 1).sum())
        self.longer = len(rows.slots) - self.single
        if self.single:
            self._plan_single(rows.slots[: self.single], rows.ends[: self.single])
        if self.longer:
            self._plan_longer(rows.slots[self.single :], rows.starts[self.single :], rows.ends[self.single :])

    def _plan_single(self, slots: Indices, ends: Indices) -> None:
        """Slots that aren't a range, but fill half of one at least, are spread over it: cheaper than a copy of their cache."""
        self.spread: Tensor | None = None
        self.read = range_or_index(slots)
        first, last = int(slots.min()), int(slots.max())
        if isinstance(self.read, Tensor) and last - first < 2 * len(slots):
            self.read = slice(first, last + 1)
            self.spread = torch.from_numpy(slots - first)
            spread_ends = np.ones(last + 1 - first, dtype=np.int64)
            spread_ends[slots - first] = ends
            ends = spread_ends
        self.reach = int(ends.max())
        self.mask = mask(np.arange(self.reach) < ends[:, None], self.keys.dtype)[:, None, None]

    def _plan_longer(self, slots: Indices, starts: Indices, ends: Indices) -> None:
        counts = ends - starts
        self.longer_read, self.longer_reach = range_or_index(slots), int(ends.max())
        step = np.arange(counts.max())
        real = step < counts[:, None]
        row_of = np.where(real, (np.cumsum(counts) - counts)[:, None] + step, 0)
        self.padded, self.real = torch.from_numpy(row_of.ravel()), torch.from_numpy(np.flatnonzero(real))
        self.longer_mask = mask(np.arange(self.longer_reach) <= (starts[:, None] + step)[:, :, None], self.keys.dtype)[:, None]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self.keys[layer], self.values[layer]
        keys.flatten(0, 1).index_copy_(0, self.written, k)
        values.flatten(0, 1).index_copy_(0, self.written, v)
        if not self.longer:
            return self._attend_single(q, keys, values)
        if not self.single:
            return self._attend_longer(q, keys, values)
        single, longer = q.split([self.single, len(q) - self.single])
        return torch.cat([self._attend_single(single, keys, values), self._attend_longer(longer, keys, values)])

    def _attend_single(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The query heads of one key head stand in for query positions."""
        q = q.unflatten(1, (keys.shape[2], -1))
        keys, values = (x[self.read, : self.reach].transpose(1, 2) for x in (keys, values))
        if self.spread is not None:
            q = q.new_zeros(len(keys), *q.shape[1:]).index_copy_(0, self.spread, q)
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=self.mask)
        if self.spread is not None:
            out = out.index_select(0, self.spread)
        return out.flatten(1, 2)

    def _attend_longer(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        keys, values = (x[self.longer_read, : self.longer_reach].transpose(1, 2) for x in (keys, values))
        q = q.index_select(0, self.padded).unflatten(0, (self.longer, -1)).transpose(1, 2)
        grouped = q.shape[1] != keys.shape[1]
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=self.longer_mask, enable_gqa=grouped)
        return out.transpose(1, 2).flatten(0, 1).index_select(0, self.real)


def range_or_index(slots: Indices) -> slice | Tensor:
    """Slots in a row are read in place, others by a copy."""
    first = int(slots[0])
    if (slots == np.arange(first, first + len(slots))).all():
        return slice(first, first + len(slots))
    return torch.from_numpy(slots)


def mask(visible: npt.NDArray[np.bool_], dtype: torch.dtype) -> Tensor:
    """What is added to attention scores: 0 where something is visible, -inf elsewhere."""
    return torch.from_numpy(np.where(visible, np.float32(0), np.float32(-np.inf))).to(dtype)

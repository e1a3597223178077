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
        [N, layers, k] uint8."""
        slots, positions = rows.flat()
        attend = _Attention(self.keys, self.values, rows, torch.from_numpy(slots), torch.from_numpy(positions))
        hidden, experts, _ = self.policy.model.run(torch.from_numpy(token_ids), torch.from_numpy(positions), attend)
        if len(slots) > len(rows.slots):
            hidden = hidden[torch.from_numpy(np.cumsum(rows.counts) - 1)]
        return self.policy.logits(self.policy.model.norm(hidden)), torch.stack(experts, 1).to(torch.uint8)


def _inputs_first(weight: Tensor) -> Tensor:
    """The same weight [..., outputs, inputs] with its inputs outermost in memory: multiplications by few rows are twice as fast."""
    return weight.movedim(-1, 0).contiguous().movedim(0, -1)


class _Attention:
    """Attention of one step: rows of one token together, straight on the cache; longer rows together, padded to the longest."""

    def __init__(self, keys: Tensor, values: Tensor, rows: Rows, slots: Tensor, positions: Tensor) -> None:
        self.keys, self.values = keys, values
        self.written = slots * keys.shape[2] + positions
        single = int((rows.counts == 1).sum())
        self.single = single
        self.prefill: Tensor | None = None
        if single:
            self._plan_single(rows.slots[:single], rows.ends[:single])
        if single < len(rows.slots):
            self._plan_prefill(rows.slots[single:], rows.starts[single:], rows.ends[single:])

    def _plan_single(self, slots: Indices, ends: Indices) -> None:
        span, self.length = int(slots.max()) + 1, int(ends.max())
        self.scatter: Tensor | None = None
        self.gather: Tensor | None = None
        if span == len(slots) and (slots[:-1] < slots[1:]).all():
            pass
        elif span <= 2 * len(slots):
            self.scatter = torch.from_numpy(slots)
            slots_ends = np.ones(span, dtype=np.int64)
            slots_ends[slots] = ends
            ends = slots_ends
        else:
            self.gather = torch.from_numpy(slots)
        self.span = len(ends)
        hidden = np.arange(self.length) >= ends[:, None]
        self.mask = torch.from_numpy(np.where(hidden, np.float32(-np.inf), np.float32(0))).to(self.keys.dtype)[:, None, None]

    def _plan_prefill(self, slots: Indices, starts: Indices, ends: Indices) -> None:
        groups = 1
        self.prefill = torch.from_numpy(slots)
        counts = ends - starts
        self.longest, self.reach = int(counts.max()), int(ends.max())
        steps = np.arange(self.longest)
        real = steps < counts[:, None]
        self.padded = torch.from_numpy(np.where(real, (np.cumsum(counts) - counts)[:, None] + steps, 0))
        self.real = torch.from_numpy(np.flatnonzero(real))
        visible = np.arange(self.reach) <= (starts[:, None] + steps)[:, :, None]
        self.prefill_mask = torch.from_numpy(visible)[:, None].expand(-1, groups, -1, -1)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self.keys[layer], self.values[layer]
        keys.flatten(0, 1).index_copy_(0, self.written, k)
        values.flatten(0, 1).index_copy_(0, self.written, v)
        if self.prefill is None:
            return self._single(q, keys, values)
        if not self.single:
            return self._prefill(q, keys, values)
        return torch.cat([self._single(q[: self.single], keys, values), self._prefill(q[self.single :], keys, values)])

    def _single(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        q = q.unflatten(1, (keys.shape[2], -1))
        if self.gather is not None:
            keys, values = keys[self.gather, : self.length], values[self.gather, : self.length]
        else:
            keys, values = keys[: self.span, : self.length], values[: self.span, : self.length]
        if self.scatter is not None:
            q = q.new_zeros(self.span, *q.shape[1:]).index_copy_(0, self.scatter, q)
        out = F.scaled_dot_product_attention(q, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=self.mask)
        if self.scatter is not None:
            out = out.index_select(0, self.scatter)
        return out.flatten(1, 2)

    def _prefill(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        assert self.prefill is not None
        keys = keys[self.prefill, : self.reach].transpose(1, 2)
        values = values[self.prefill, : self.reach].transpose(1, 2)
        padded = q[self.padded].transpose(1, 2)
        out = F.scaled_dot_product_attention(
            padded, keys, values, attn_mask=self.prefill_mask, enable_gqa=padded.shape[1] != keys.shape[1]
        )
        return out.transpose(1, 2).flatten(0, 1)[self.real]

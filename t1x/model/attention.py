"""Projections of grouped-query attention with QK-norm and RoPE. How queries meet keys is the caller's: a training batch attends
to itself, the engine to its cache."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from t1x.model.norm import rms_normalize

if TYPE_CHECKING:
    from t1x.model.qwen3_moe import Qwen3Moe

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, queries [N, H, d], keys [N, Hkv, d], values [N, Hkv, d]) to the attended values [N, H, d]."""


class RotaryTable(nn.Module):
    """cos and sin of every position, [max_position_embeddings, d] float32, halves repeated (rotate-half layout)."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
        angles = torch.arange(config.max_position_embeddings, dtype=torch.float32)[:, None] / config.rope_theta**pairs
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer(
            "sin", angles.sin().repeat(1, 2) * torch.tensor([-1.0, 1.0]).repeat_interleave(len(pairs)), persistent=False
        )

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """[N] positions to cos and signed sin, [N, 1, d] each."""
        return self.cos.index_select(0, positions).unsqueeze(1), self.sin.index_select(0, positions).unsqueeze(1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE of x [N, heads, d]: (x₁, x₂) to (x₁·cos − x₂·sin, x₂·cos + x₁·sin); the sign is in `sin`."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


class Attention(nn.Module):
    """Query, key and value projection in one matrix, per-head RMSNorm of queries and keys, output projection."""

    _gain_of_head: Tensor

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.eps = config.rms_norm_eps
        self.qkv = nn.Linear(config.hidden_size, (self.heads + 2 * self.kv_heads) * self.head_dim, bias=False)
        self.qk_norm = nn.Parameter(torch.ones(2, self.head_dim))
        """[2, d]: gain of the queries' norm, gain of the keys'."""
        self.register_buffer("_gain_of_head", torch.tensor([0] * self.heads + [1] * self.kv_heads), persistent=False)
        self.output = nn.Linear(self.heads * self.head_dim, config.hidden_size, bias=False)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend, layer: int) -> Tensor:
        """x [N, D] to [N, D]."""
        qkv = self.qkv(x).view(len(x), -1, self.head_dim)
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], 1)
        gain = self.qk_norm.index_select(0, self._gain_of_head)
        qk = rotate(rms_normalize(qk, self.eps) * gain, *rotary)
        q, k = qk.split([self.heads, self.kv_heads], 1)
        return self.output(attend(layer, q, k, v).flatten(1))

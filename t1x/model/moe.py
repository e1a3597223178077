"""Mixture of SwiGLU experts behind a softmax top-k router. Experts' weights are stacked, so that a few tokens can go through all
experts in two multiplications, and many through their own experts only."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from t1x.model.experts import SortedExperts
from t1x.model.replayable_router import ReplayableRouter

if TYPE_CHECKING:
    from t1x.model.qwen3_moe import Qwen3Moe

DENSE_TOKENS = {torch.float32: 128, torch.bfloat16: 768}
"""In inference mode (the engine) and up to as many tokens, all experts for every token are faster than sorting tokens by expert
(measured on a CPU with AMX, one thread, hidden 128, 8 experts top-2 of width 64). Training passes take the sorted path with
gradient and without, so that both give the same bits: the version skew of a synchronous step is exactly 0."""


class Routed(NamedTuple):
    """What one MoE layer did."""

    hidden: Tensor
    """[N, D]"""
    experts: Tensor
    """[N, k] int64, in the router's slot order (by weight, falling; the record's order in a replay)."""
    logits: Tensor
    """[N, E] float32, of the router."""


class MoeLayer(nn.Module):
    """Router and experts of one layer."""

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        experts, width, hidden = config.num_experts, config.moe_intermediate_size, config.hidden_size
        projection = nn.Linear(hidden, experts, bias=False)
        self.router = ReplayableRouter(projection, config.num_experts_per_tok, config.norm_topk_prob)
        self.gate_up = nn.Parameter(torch.empty(experts, 2 * width, hidden))
        """[E, 2F, D]: rows of the gate projection, then of the up projection."""
        self.down = nn.Parameter(torch.empty(experts, width, hidden))
        """[E, F, D]: the down projection, transposed."""

    def forward(self, x: Tensor) -> Routed:
        """x [N, D]"""
        logits, weights, chosen = self.router(x)
        few = len(x) <= DENSE_TOKENS.get(x.dtype, 0) and torch.is_inference_mode_enabled()
        mixed = self._all_experts(x, chosen, weights) if few else SortedExperts.apply(x, chosen, weights, self.gate_up, self.down)
        return Routed(mixed, chosen, logits)

    def _all_experts(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        experts, twice_width, hidden = self.gate_up.shape
        gates = torch.zeros(len(x), experts, dtype=x.dtype, device=x.device).scatter_(1, chosen, weights)
        gate, up = F.linear(x, self.gate_up.view(-1, hidden)).view(len(x), experts, 2, twice_width // 2).unbind(2)
        return F.silu(gate).mul_(up).mul_(gates.unsqueeze(2)).flatten(1) @ self.down.view(-1, hidden)

"""Every token through its own experts, for many tokens: they are sorted by expert, so that an expert is one multiplication a
matrix.

The backward pass is written out: it allocates each expert gradient once and keeps one buffer where autograd would keep a node, a
copy and a mask an expert.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class SortedExperts(torch.autograd.Function):
    """(x [N, D], chosen [N, k], weights [N, k], gate_up [E, 2F, D], down [E, F, D]) to Σ weights · SwiGLU experts of x, [N, D].

    With h = W_gate x, u = W_up x and s = weight · silu(h) · u, an expert adds W_downᵀ s.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, chosen: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
        order = chosen.flatten().argsort(stable=True)
        spans = _spans(chosen, len(gate_up))
        token = order.div(chosen.shape[1], rounding_mode="floor")
        rows = x.index_select(0, token)
        projected = rows.new_empty(len(rows), gate_up.shape[1])
        for expert, span in spans:
            torch.mm(rows[span], gate_up[expert].t(), out=projected[span])
        gate, up = projected.chunk(2, -1)
        share = weights.flatten().index_select(0, order).unsqueeze(1)
        scaled = F.silu(gate).mul_(up).mul_(share)
        outputs = torch.empty_like(rows)
        for expert, span in spans:
            torch.mm(scaled[span], down[expert], out=outputs[span])
        ctx.save_for_backward(order, token, rows, projected, share, scaled, gate_up, down)
        ctx.spans, ctx.shape = spans, chosen.shape
        return torch.zeros_like(x).index_add_(0, token, outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, Tensor, Tensor]:
        order, token, rows, projected, share, scaled, gate_up, down = ctx.saved_tensors
        grad_outputs = grad.index_select(0, token)
        grad_scaled = torch.empty_like(scaled)
        grad_gate_up, grad_down = torch.zeros_like(gate_up), torch.zeros_like(down)
        for expert, span in ctx.spans:
            torch.mm(grad_outputs[span], down[expert].t(), out=grad_scaled[span])
            torch.mm(scaled[span].t(), grad_outputs[span], out=grad_down[expert])
        gate, up = projected.chunk(2, -1)
        activated = F.silu(gate)
        grad_share = torch.linalg.vecdot(grad_scaled, activated * up)
        grad_scaled.mul_(share)
        grad_projected = torch.cat([torch.ops.aten.silu_backward(grad_scaled * up, gate), grad_scaled.mul_(activated)], -1)
        grad_rows = torch.empty_like(rows)
        for expert, span in ctx.spans:
            torch.mm(grad_projected[span], gate_up[expert], out=grad_rows[span])
            torch.mm(grad_projected[span].t(), rows[span], out=grad_gate_up[expert])
        grad_x = torch.zeros_like(grad).index_add_(0, token, grad_rows)
        grad_weights = torch.empty_like(grad_share).index_copy_(0, order, grad_share).view(ctx.shape)
        return grad_x, None, grad_weights, grad_gate_up, grad_down


def _spans(chosen: Tensor, experts: int) -> list[tuple[int, slice]]:
    """The sorted rows of every expert that has some."""
    counts = torch.bincount(chosen.flatten(), minlength=experts)
    ends = counts.cumsum(0).tolist()
    return [
        (expert, slice(end - count, end)) for expert, (count, end) in enumerate(zip(counts.tolist(), ends, strict=True)) if count
    ]

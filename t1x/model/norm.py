"""Root-mean-square normalisation (Zhang and Sennrich 2019)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def rms_normalize(x: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) over the last dimension, computed in float32. Fewer passes over memory than torch's own on a CPU."""
    normalized: Tensor = _Normalize.apply(x, eps) if torch.is_grad_enabled() else _normalize(x, eps)[0]
    return normalized


def _normalize(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    scale = norm.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
    return (x * scale).to(x.dtype), scale


class _Normalize(torch.autograd.Function):
    """With y = s·x and s = (mean(x²) + eps)^-½: dx = s·(dy − y·mean(dy·y))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        normalized, scale = _normalize(x, eps)
        ctx.save_for_backward(normalized, scale)
        return normalized

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        normalized, scale = ctx.saved_tensors
        mean = torch.linalg.vecdot(grad, normalized).unsqueeze(-1) / grad.shape[-1]
        return torch.addcmul(grad, normalized, mean, value=-1).mul_(scale), None


class RMSNorm(nn.Module):
    """`rms_normalize` and a gain a channel."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] to the same."""
        return rms_normalize(x, self.eps) * self.weight

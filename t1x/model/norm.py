"""Root-mean-square normalisation (Zhang and Sennrich 2019)."""

import torch
from torch import Tensor, nn


def rms_normalize(x: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) over the last dimension, computed in float32. Fewer operations than torch's own on a CPU."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    scale = torch.rsqrt(norm * norm / x.shape[-1] + eps)
    return (x * scale).to(x.dtype)


class RMSNorm(nn.Module):
    """`rms_normalize` and a gain a channel."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] to the same."""
        return rms_normalize(x, self.eps) * self.weight

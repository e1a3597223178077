"""The objectives of PPO, a value for each loss token. Pure functions of tensors [m]; the caller divides sums by the loss tokens of
the whole optimizer step, so nothing depends on the split into micro-batches."""

import torch
from torch import Tensor


def token_logprobs(logits: Tensor, targets: Tensor, temperatures: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities [m] of `targets` [m] and the entropy [m] (nats, no gradient) of softmax(logits / temperature), logits [m,
    V]."""
    all_logprobs = torch.log_softmax(logits / temperatures[:, None], dim=-1)
    with torch.no_grad():
        entropy = -(all_logprobs.exp() * all_logprobs).sum(dim=-1)
    return all_logprobs.gather(1, targets[:, None]).squeeze(1), entropy


def clipped_surrogate(ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """-min(r Â, clip(r, 1 - ε, 1 + ε) Â), the summand of Eq. 18."""
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def clipped_value_error(values: Tensor, old_values: Tensor, returns: Tensor, clip: float) -> Tensor:
    """max((V - R̂)², (V_clip - R̂)²) with V_clip = V_old + clip(V - V_old, ±clip), the summand of Eq. 17."""
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    return torch.maximum((values - returns).square(), (clipped - returns).square())


def kl_estimate(ratio: Tensor) -> Tensor:
    """Estimate of KL(behaviour ‖ current) from tokens that the behaviour policy sampled: r - 1 - log r, unbiased and never negative
    (Schulman's k3)."""
    return ratio - 1 - ratio.log()


def outside_clip(ratio: Tensor, clip: float) -> Tensor:
    """1 where the ratio has left [1 - ε, 1 + ε], else 0; its mean is the clip fraction."""
    return ((ratio - 1).abs() > clip).to(ratio.dtype)

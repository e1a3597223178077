"""The mathematics of objectives and of the value loss, a value for each loss token. Pure functions of tensors [m]; the trainer adds
values up under weights of the whole optimizer step (`loss_weights`), so nothing depends on the split into micro-batches."""

import torch
from torch import Tensor


def token_logprobs(logits: Tensor, targets: Tensor, temperatures: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities [m] of `targets` [m] and the entropy [m] (nats, no gradient) of softmax(logits / temperature), logits [m,
    V]."""
    all_logprobs = torch.log_softmax(logits / temperatures[:, None], dim=-1)
    with torch.no_grad():
        entropy = -(all_logprobs.exp() * all_logprobs).sum(dim=-1)
    return all_logprobs.gather(1, targets[:, None]).squeeze(1), entropy


def clipped_surrogate(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """-min(r Â, clip(r, 1 - low, 1 + high) Â), the summand of Eq. 18."""
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def sample_means(values: Tensor, samples: Tensor) -> Tensor:
    """[m]: for each token the mean over its sample; `samples` [m] as in `Objective.losses`."""
    counts = torch.bincount(samples)
    return torch.segment_reduce(values, "mean", lengths=counts)[samples]


def clipped_value_error(values: Tensor, old_values: Tensor, returns: Tensor, clip: float) -> Tensor:
    """max((V - R̂)², (V_clip - R̂)²) with V_clip = V_old + clip(V - V_old, ±clip), the summand of Eq. 17."""
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    return torch.maximum((values - returns).square(), (clipped - returns).square())


def kl_estimates(log_ratio: Tensor) -> dict[str, Tensor]:
    """Two estimates of KL(behaviour ‖ current) from log r = c - o of tokens that the behaviour policy sampled, both unbiased
    (Schulman 2020): `kl_k1` = -log r, and `kl` = r - 1 - log r (his k3), of less variance and never negative."""
    return {"kl": log_ratio.expm1() - log_ratio, "kl_k1": -log_ratio}


def outside_clip(ratio: Tensor, low: float, high: float) -> Tensor:
    """1 where the ratio has left [1 - low, 1 + high], else 0; its mean is the clip fraction."""
    return ((ratio < 1 - low) | (ratio > 1 + high)).to(ratio.dtype)

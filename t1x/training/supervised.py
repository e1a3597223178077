"""Supervised training of a policy on demonstrations."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from t1x.model.transformer import ModelOutput, MoeTransformer
from t1x.training.fine_tuning import Supervised
from t1x.training.microbatch import pack
from t1x.trajectory.records import Trajectory

BUCKET = 16
"""Batches whose demonstrations are sorted by length together: enough that many of a batch are equally long (attention takes those
in one call), few enough that batches stay random."""


def fit(
    model: MoeTransformer, trajectories: Sequence[Trajectory], spec: Supervised, on_step: Callable[[int, float], None]
) -> list[float]:
    """Trains `model` in place; see `Supervised.fit`. Raises `ValueError` where there is nothing to learn from."""
    if not trajectories or not all(trajectory.loss_mask[1:].any() for trajectory in trajectories):
        raise ValueError("every demonstration needs a token that carries loss after its first; there must be at least one")
    optimizer = spec.optimizer.build(model.parameters(), total_steps=spec.steps)
    lengths = np.array([len(trajectory.token_ids) for trajectory in trajectories])
    nowhere = np.zeros(len(trajectories), dtype=np.int64)
    batches = epochs(lengths, spec.batch, np.random.default_rng(spec.seed))
    losses = []
    for step in range(spec.steps):
        micro = pack(trajectories, next(batches), nowhere)
        token_ids, keep = torch.from_numpy(micro.token_ids), torch.from_numpy(micro.keep)
        output: ModelOutput = model(token_ids, lengths=micro.lengths, keep=keep)
        loss = F.cross_entropy(model.logits(output.hidden), torch.from_numpy(micro.targets))
        total = loss + spec.balance * balance_loss(output) if spec.balance else loss
        total.backward()
        optimizer.step()
        losses.append(loss.item())
        on_step(step, losses[-1])
    return losses


def balance_loss(output: ModelOutput) -> Tensor:
    """E · Σ_e f_e P_e over all positions, the mean over layers: f_e is the share of (token, slot) pairs that went to expert e, P_e
    its mean probability. 1 where experts are used equally (Switch Transformers, Eq. 4)."""
    layers = []
    for logits, experts in zip(output.router_logits, output.routed_experts.unbind(-2), strict=True):
        share = torch.bincount(experts.flatten(), minlength=logits.shape[-1]) / experts.numel()
        layers.append(logits.shape[-1] * (share * logits.softmax(dim=-1).mean(dim=0)).sum())
    return torch.stack(layers).mean()


def epochs(lengths: npt.NDArray[np.int64], size: int, random: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Endless batches of indices, each demonstration once an epoch (a remainder smaller than a batch waits for another epoch),
    those of one batch of like length."""
    size = min(size, len(lengths))
    while True:
        order = random.permutation(len(lengths))[: len(lengths) // size * size]
        batches = []
        for bucket in np.split(order, range(size * BUCKET, len(order), size * BUCKET)):
            by_length = bucket[np.argsort(lengths[bucket], kind="stable")]
            batches += np.split(by_length, len(bucket) // size)
        for index in random.permutation(len(batches)):
            yield batches[index]

"""The pass that finds margins: the trainer's network over a batch, routing freely."""

from dataclasses import dataclass

import numpy as np
import torch

from t1x.campaign.gap import Floats
from t1x.campaign.margin import Flags, Margins
from t1x.model.transformer import MoeTransformer
from t1x.training.batch import Batch
from t1x.training.microbatch import pack, split
from t1x.training.surrogate import token_logprobs


@dataclass(frozen=True, slots=True)
class FreePass:
    """Of a batch of R routing rows and M loss tokens."""

    margins: Floats | None
    """[R, L]: γ; None where the model uses all its experts, so that nothing can flip."""
    flipped: Flags
    """[R, L]: whether the network's own top-k is another set than the record's."""
    entropies: Floats
    """[M]: of the policy, nats."""

    def of(self, batch: Batch, distances: Floats) -> Margins:
        """With |o - q| [M] under free routing, without the rows that nobody recorded."""
        assert self.margins is not None, "something can flip"
        loss = np.concatenate([trajectory.loss_mask[1:] for trajectory in batch.trajectories])
        per_row = np.full(len(loss), np.nan)
        per_row[loss] = distances
        recorded = np.ones(len(loss), np.bool_)
        for start, trajectory in zip(np.cumsum(batch.lengths) - batch.lengths, batch.trajectories, strict=True):
            recorded[start + np.array(trajectory.substituted_rows, np.int64)] = False
        trials = np.repeat(batch.trials, batch.lengths)
        return Margins(self.margins[recorded], self.flipped[recorded], trials[recorded], per_row[recorded], len(batch.rewards))


@torch.no_grad()
def free_pass(policy: MoeTransformer, batch: Batch, tokens_per_pass: int = 4096) -> FreePass:
    """Runs the network (its own precision, on the device that it is on)."""
    k, experts, layers = policy.config.num_experts_per_tok, policy.config.num_experts, policy.config.num_hidden_layers
    starts = np.cumsum(batch.lengths) - batch.lengths
    margins = np.zeros((int(batch.lengths.sum()), layers), np.float32)
    flipped = np.zeros(margins.shape, np.bool_)
    entropies = np.zeros(batch.loss_tokens)
    device = next(policy.parameters()).device
    for part in split(batch.lengths, np.arange(len(batch.lengths)), tokens_per_pass):
        micro = pack(batch.trajectories, part, batch.offsets)
        ids, keep, targets, temperatures, record = (
            torch.from_numpy(each).to(device)
            for each in (micro.token_ids, micro.keep, micro.targets, micro.temperatures, micro.routing.astype(np.int64))
        )
        output = policy(ids, lengths=micro.lengths, keep=keep)
        rows = np.concatenate([start + np.arange(length) for start, length in zip(starts[part], batch.lengths[part], strict=True)])
        flipped[rows] = (output.routed_experts.sort(-1).values != record.sort(-1).values).any(-1).cpu().numpy()
        if k < experts:
            scores = torch.stack(output.router_logits, 1).topk(k + 1).values
            margins[rows] = (scores[..., k - 1] - scores[..., k]).cpu().numpy()
        entropies[micro.places] = token_logprobs(policy.logits(output.hidden), targets, temperatures)[1].cpu().numpy()
    return FreePass(margins if k < experts else None, flipped, entropies)

"""Which experts some weights choose on a stored trial, beside those that its sampler chose."""

from pathlib import Path

import numpy as np
import torch

from t1x.model.checkpoint import load_pretrained
from t1x.model.routing_layout import Experts
from t1x.trajectory.stored import StoredTrial


@torch.inference_mode()
def chosen_experts(policy: Path, trial: StoredTrial) -> list[Experts]:
    """Of each trajectory of N ids [N-1, layers, k], routing freely; `policy` is the folder of the weights. Raises `ValueError`
    where records are of another shape."""
    network, chosen = load_pretrained(policy).model, []
    for stream in trial.trajectories:
        ids = torch.from_numpy(stream.token_ids.astype(np.int64))
        experts = network(ids[None]).routed_experts[0, :-1].numpy()
        if experts.shape != stream.routed_experts.shape:
            raise ValueError(
                f"the trial's records have [layers, k] = {list(stream.routed_experts.shape[1:])}, but the policy in {policy} has "
                f"{list(experts.shape[1:])}; name the weights that it was sampled from"
            )
        chosen.append(experts)
    return chosen

"""Checkpoints that say in every tensor which they are."""

from typing import Any

import numpy as np
import torch

from t1x.campaign.checkpoint_folder import Checkpoint, StoredNetwork


def checkpoint(index: int, name: str = "", size: int = 50, networks: tuple[str, ...] = ("policy", "critic")) -> Checkpoint:
    """The one that a run makes at `index`; equal ones for equal arguments."""
    random = torch.Generator().manual_seed(index)

    def network(which: str) -> StoredNetwork:
        weights = {f"{which}.{part}": torch.randn(size, generator=random) for part in ("a", "b")}
        return StoredNetwork({"model_type": "qwen3_moe", "architectures": [which], "index": index}, weights)

    state: dict[str, Any] = {
        "standing": {"steps": index, "history": {str(step): {"reward": step / 3} for step in range(index)}},
        "optimizer": {0: {"exp_avg": torch.randn(size, generator=random).to(torch.bfloat16), "step": torch.tensor(index)}},
        "pending": np.arange(size, dtype=np.uint8),
        "none": None,
    }
    return Checkpoint(name or (f"step-{index}" if index else "start"), index, {which: network(which) for which in networks}, state)


def same(one: Any, other: Any) -> bool:
    """Equal to the bit, with equal types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        bits = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(*bits)
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)  # of floats: a NaN, and a zero with its sign

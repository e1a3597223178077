"""What processes that compute one thing together ask of each other.

Invariant: every rank runs the same operations in the same order and comes out with the same bits, so that whatever depends on these
sums, an optimizer step or a decision to skip one, is the same everywhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn

Ints = npt.NDArray[np.int64]
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Ranks:
    """One rank's view of all of them; the only one where nothing is said. Where there are several, torch's default process group
    is theirs."""

    rank: int = 0
    size: int = 1
    fully_sharded: bool = False
    """Whether networks are sharded (FSDP2) rather than replicated."""
    device: str = "cpu"
    """Where it computes, as torch names it."""

    def shares(self, weights: Ints, indices: Ints) -> list[Ints]:
        """Splits `indices` into one part a rank, of near-equal sums of `weights`: the heaviest first, each to the lightest part.
        Some parts are empty where there are more ranks than indices."""
        parts: list[list[int]] = [[] for _ in range(self.size)]
        loads = [0] * self.size
        for index in indices[np.argsort(-weights[indices], kind="stable")].tolist():
            lightest = loads.index(min(loads))
            parts[lightest].append(index)
            loads[lightest] += int(weights[index])
        return [np.sort(np.array(part, dtype=np.int64)) for part in parts]

    def spread(self, network: Network) -> Network:
        """The network where this rank computes with it, sharded over all ranks if they are to be; its gradients are then sums over
        ranks, as `add_up`'s are."""
        network.to(self.device)
        if self.fully_sharded:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh(torch.device(self.device).type, (self.size,))
            parts: list[nn.Module] = [
                layer for part in network.modules() if isinstance(part, nn.ModuleList) for layer in part.children()
            ]
            parts.append(network)
            for part in parts:
                sharded = fully_shard(part, mesh=mesh)
                sharded.set_gradient_divide_factor(1.0)
                sharded.set_force_sum_reduction_for_comms(True)
        return network

    def settle(self, network: nn.Module) -> None:
        """Must be called after passes without gradient: it forgets full weights that the network gathered for them, which would be
        stale after the next update."""
        if self.fully_sharded:
            network.reshard()  # type: ignore[operator]

    def add_up(self, parameters: Iterable[nn.Parameter]) -> None:
        """Makes the gradients the sums of all ranks'; a rank without any takes part with zeros."""
        if self.size == 1 or self.fully_sharded:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, summed in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient))

    def filled(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of all ranks' vectors, each of which is 0 where another one's isn't."""
        if self.size == 1:
            return vector
        total = torch.from_numpy(vector).clone()
        dist.all_reduce(total)
        return total.numpy()

    def gathered(self, item: Any) -> list[Any]:
        """Every rank's item (anything that can be pickled), by rank."""
        items = [item] * self.size
        if self.size > 1:
            dist.all_gather_object(items, item)
        return items

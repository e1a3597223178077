"""Weights of policy versions whose batches are still to be trained on.

Invariant: they are restored into a network of their own; the one that is trained is never touched.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from t1x.model.checkpoint import load_hf, to_hf
from t1x.model.transformer import MoeTransformer
from t1x.parallel.ranks import Ranks
from t1x.parallel.sharded import own


class RetainedWeights:
    """Copies of a policy's weights by version, in host memory; of sharded ones each rank keeps its shards."""

    def __init__(self, ranks: Ranks, actor: MoeTransformer) -> None:
        self._ranks, self._actor = ranks, actor
        self._versions: dict[int, dict[str, Tensor]] = {}

    @property
    def versions(self) -> list[int]:
        """Those that are there, rising."""
        return sorted(self._versions)

    def retain(self, version: int) -> None:
        """Keeps the weights as they are now."""
        self._versions[version] = _copied(self._actor)

    def release(self, older_than: int) -> None:
        """Forgets versions below this one."""
        self._versions = {version: weights for version, weights in self._versions.items() if version >= older_than}

    def restored(self, version: int) -> MoeTransformer:
        """A network with the weights of a version that is there."""
        network = self._blank()
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                own(parameter).copy_(self._versions[version][name])
        return network

    def state_dict(self) -> dict[str, Any]:
        """Version (as a string) to whole weights by Hugging Face name."""
        return {
            str(version): {name: tensor.clone() for name, tensor in to_hf(self.restored(version)).items()}
            for version in self.versions
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._versions = {}
        network = self._blank()
        for version, weights in state.items():
            load_hf(network, weights)
            self._versions[int(version)] = _copied(network)

    def _blank(self) -> MoeTransformer:
        with torch.random.fork_rng(devices=[]):  # a module draws weights when it is made
            network = MoeTransformer(self._actor.config)
        return self._ranks.spread(network.requires_grad_(False))


def _copied(network: MoeTransformer) -> dict[str, Tensor]:
    return {name: own(parameter).detach().to("cpu", copy=True) for name, parameter in network.named_parameters()}

"""The PyTorch trainer over several processes, each a `TorchTrainerWorker` that takes its share of every optimizer step.

Invariant: every rank makes the same calls in the same order with the same batch, so that what one answers is what all would.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch

from t1x.model.router import RouterMode
from t1x.model.transformer import MoeTransformer
from t1x.model.value import ValueModel
from t1x.parallel.rank_group import RankGroup
from t1x.parallel.ranks import Ranks
from t1x.training.algorithm import Algorithm, TokenVector
from t1x.training.batch import Batch
from t1x.training.torch_trainer import TorchTrainerWorker
from t1x.training.trainer import TorchTrainer


class TrainerRank:
    """What runs in a rank."""

    def __init__(
        self,
        ranks: Ranks,
        spec: TorchTrainer,
        algorithm: Algorithm,
        actor: MoeTransformer,
        critic: ValueModel | None,
        steps: int | None,
    ) -> None:
        self._ranks, self._worker = ranks, TorchTrainerWorker(spec, algorithm, actor, critic, steps, ranks)
        self._batch: Batch | None = None

    def hold(self, batch: Batch) -> None:
        """Takes over the batch of the calls to come, so that it is sent once a step."""
        self._batch = batch

    def do(self, version: int, on_batch: bool, method: str, *arguments: Any) -> tuple[int, Any]:
        """Calls the worker, with the batch first if it is `on_batch`; the actor's version after it and, of rank 0, the result."""
        self._worker.version = version
        result = getattr(self._worker, method)(*((self._batch,) if on_batch else ()), *arguments)
        return self._worker.version, _owned(result) if self._ranks.rank == 0 else None


class DataParallelTrainer:
    """What each method means stands at `TrainerWorker`."""

    def __init__(
        self, spec: TorchTrainer, algorithm: Algorithm, actor: MoeTransformer, critic: ValueModel | None, steps: int | None
    ) -> None:
        self.version = 0
        threads = max(1, torch.get_num_threads() // spec.plan.data)
        self._ranks = RankGroup(spec.plan, threads, TrainerRank, spec, algorithm, actor, critic, steps)
        self._batch: Batch | None = None

    def values(self, batch: Batch) -> TokenVector:
        return cast(TokenVector, self._on(batch, "values"))

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        return cast(TokenVector, self._on(batch, "log_probs", mode))

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        return cast(dict[str, float], self._on(batch, "update_critic", old_values, returns))

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector | None, mode: RouterMode
    ) -> dict[str, float]:
        return cast(dict[str, float], self._on(batch, "update_actor", advantages, behaviour_logprobs, mode))

    def retain(self) -> None:
        self._do("retain", control=True)

    def release(self, older_than: int) -> None:
        self._do("release", older_than, control=True)

    def weights(self) -> dict[str, Any]:
        return cast(dict[str, Any], self._do("weights"))

    def critic_weights(self) -> dict[str, Any] | None:
        return cast(dict[str, Any] | None, self._do("critic_weights"))

    def load_weights(self, actor: Mapping[str, Any], critic: Mapping[str, Any] | None) -> None:
        self._do("load_weights", _owned(dict(actor)), None if critic is None else _owned(dict(critic)))

    def state_dict(self) -> dict[str, Any]:
        return cast(dict[str, Any], self._do("state_dict"))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._do("load_state_dict", state)

    def close(self) -> None:
        self._ranks.close()

    def _on(self, batch: Batch, method: str, *arguments: Any) -> Any:
        if batch is not self._batch:
            self._ranks.call("hold", batch)
            self._batch = batch
        return self._do(method, *arguments, on_batch=True)

    def _do(self, method: str, *arguments: Any, on_batch: bool = False, control: bool = False) -> Any:
        self.version, result = self._ranks.call("do", self.version, on_batch, method, *arguments, control=control)
        return result


def _owned(result: Any) -> Any:
    """Weights that are views, each in memory of its own: pickled, a view takes all that it is a view of along."""
    if isinstance(result, dict):
        return {key: _owned(value) for key, value in result.items()}
    return result.cpu().contiguous().clone() if isinstance(result, torch.Tensor) else result

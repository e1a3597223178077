"""The PyTorch trainer of one process.

Invariants:
- the behaviour pass and the first pass of an update go through the same mini- and micro-batches, so that with the same weights they
  are equal to the last bit;
- losses are sums over tokens under weights that are known from the whole optimizer step, so micro-batches change no result.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from t1x.model.checkpoint import load_hf, to_hf
from t1x.model.router import RouterMode
from t1x.model.transformer import MoeTransformer
from t1x.model.value import ValueModel
from t1x.training.algorithm import Algorithm, TokenVector, Update
from t1x.training.batch import Batch
from t1x.training.explained_variance import ExplainedVariance, trial_explained_variance
from t1x.training.microbatch import MicroBatch, pack, split
from t1x.training.mismatch import gap_metrics
from t1x.training.normalizer import loss_weights
from t1x.training.surrogate import clipped_value_error, token_logprobs
from t1x.training.torch_optimizer import TorchOptimizer
from t1x.training.trainer import TorchTrainer

Samples = npt.NDArray[np.int64]


class TorchTrainerWorker:
    """The networks and their optimizers; what each method means stands at `TrainerWorker`."""

    def __init__(self, spec: TorchTrainer, algorithm: Algorithm, actor: MoeTransformer, critic: ValueModel | None) -> None:
        self.version = 0
        self._retained: dict[int, dict[str, Tensor]] = {}
        assert (critic is None) == (algorithm.critic is None), "there is a critic where the algorithm has one"
        self.spec, self.algorithm, self.actor, self.critic = spec, algorithm, actor, critic
        self.actor_optimizer = algorithm.actor.optimizer.build(actor.parameters())
        self.critic_optimizer: TorchOptimizer | None = None
        if critic is not None and algorithm.critic is not None:
            self.critic_optimizer = algorithm.critic.optimizer.build(critic.parameters())

    @torch.no_grad()
    def values(self, batch: Batch) -> TokenVector:
        values = np.empty(batch.loss_tokens)
        for micro in self._microbatches(batch, np.arange(len(batch.trajectories))):
            values[micro.places] = self._values(micro).numpy()
        return values

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        logprobs = np.empty(batch.loss_tokens)
        for part in batch.minibatches(self.algorithm.actor.minibatches, epoch=0):
            self._log_probs_of(part, batch, mode, into=logprobs)
        return logprobs

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        update, optimizer = self.algorithm.critic, self.critic_optimizer
        assert update is not None, "the algorithm has a critic"
        assert optimizer is not None
        means, skipped = _Means(), optimizer.skipped
        for part in _steps(batch, update):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part):
                values = self._values(micro)
                old, target = _at(micro.places, old_values, values), _at(micro.places, returns, values)
                error = clipped_value_error(values, old, target, update.clip)
                (error * _at(micro.places, weights, error)).sum().backward()
                means.add(loss=error, value_clip_fraction=((values - old).abs() > update.clip).double())
            means.add(grad_norm=torch.tensor([optimizer.step()]))
        explained = {
            "explained_variance": ExplainedVariance.of(returns, old_values).value,
            "explained_variance_trial": trial_explained_variance(returns, old_values, batch.counts, batch.trials),
        }
        metrics = {
            **means.values(),
            **{name: value for name, value in explained.items() if value is not None},
            "value_mean": float(old_values.mean()),
            "return_mean": float(returns.mean()),
            "lr": optimizer.lr,
            "skipped_steps": float(optimizer.skipped - skipped),
        }
        return {f"critic/{name}": value for name, value in metrics.items()}

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector | None, mode: RouterMode
    ) -> dict[str, float]:
        assert behaviour_logprobs is not None
        update, optimizer = self.algorithm.actor, self.actor_optimizer
        means, skipped = _Means(), optimizer.skipped
        current = np.empty(batch.loss_tokens)
        for part in batch.minibatches(update.minibatches, epoch=0)[1:]:
            self._log_probs_of(part, batch, mode, into=current)
        for step, part in enumerate(_steps(batch, update)):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part, mode):
                logprobs, entropy = self._logprobs(micro, mode)
                old, advantage = _at(micro.places, behaviour_logprobs, logprobs), _at(micro.places, advantages, logprobs)
                found = update.objective.losses(logprobs, old, advantage, torch.from_numpy(micro.samples))
                (found.losses * _at(micro.places, weights, logprobs)).sum().backward()
                means.add(loss=found.losses, entropy=entropy, **found.watched)
                if step == 0:
                    current[micro.places] = logprobs.detach().numpy()
            means.add(grad_norm=torch.tensor([optimizer.step()]))
        metrics = {**means.values(), "lr": optimizer.lr, "skipped_steps": float(optimizer.skipped - skipped)}
        return {f"actor/{name}": value for name, value in metrics.items()} | gap_metrics(
            batch.sampler_logprobs, behaviour_logprobs, current
        )

    def retain(self) -> None:
        self._retained[self.version] = {name: tensor.clone() for name, tensor in to_hf(self.actor).items()}

    def release(self, older_than: int) -> None:
        self._retained = {version: weights for version, weights in self._retained.items() if version >= older_than}

    def weights(self) -> dict[str, Any]:
        return dict(to_hf(self.actor))

    def critic_weights(self) -> dict[str, Any] | None:
        return None if self.critic is None else dict(to_hf(self.critic))

    def load_weights(self, actor: Mapping[str, Any], critic: Mapping[str, Any] | None) -> None:
        load_hf(self.actor, actor)
        if self.critic is not None and critic is not None:
            load_hf(self.critic, critic)

    def state_dict(self) -> dict[str, Any]:
        optimizers = {name: deepcopy(part.state_dict()) for name, part in self._optimizers().items()}
        return {**optimizers, "version": self.version, "retained": {str(key): value for key, value in self._retained.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self._optimizers().items():
            part.load_state_dict(state[name])
        self.version = state["version"]
        self._retained = {int(version): dict(weights) for version, weights in state["retained"].items()}

    def close(self) -> None:
        self._retained.clear()

    def _optimizers(self) -> dict[str, TorchOptimizer]:
        found = {"actor_optimizer": self.actor_optimizer}
        return found if self.critic_optimizer is None else found | {"critic_optimizer": self.critic_optimizer}

    def _microbatches(self, batch: Batch, samples: Samples, mode: RouterMode = RouterMode.FREE) -> Iterator[MicroBatch]:
        experts = None if mode is RouterMode.FREE else self.actor.config.num_experts
        for part in split(batch.lengths, samples, self.spec.tokens_per_microbatch):
            yield pack(batch.trajectories, part, batch.offsets, experts)

    @torch.no_grad()
    def _log_probs_of(self, samples: Samples, batch: Batch, mode: RouterMode, into: TokenVector) -> None:
        for micro in self._microbatches(batch, samples, mode):
            into[micro.places] = self._logprobs(micro, mode)[0].numpy()

    def _logprobs(self, micro: MicroBatch, mode: RouterMode) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies, [m] each."""
        routing = None if micro.routing is None else torch.from_numpy(micro.routing)
        keep = torch.from_numpy(micro.keep)
        hidden = self.actor(torch.from_numpy(micro.token_ids), routing=routing, mode=mode, keep=keep).hidden
        return token_logprobs(self.actor.logits(hidden), torch.from_numpy(micro.targets), torch.from_numpy(micro.temperatures))

    def _values(self, micro: MicroBatch) -> Tensor:
        assert self.critic is not None, "the algorithm has a critic"
        values: Tensor = self.critic(torch.from_numpy(micro.token_ids), keep=torch.from_numpy(micro.keep))
        return values


def _steps(batch: Batch, update: Update) -> Iterator[Samples]:
    """The samples of each optimizer step."""
    for epoch in range(update.epochs):
        yield from batch.minibatches(update.minibatches, epoch)


def _at(places: Samples, vector: TokenVector, like: Tensor) -> Tensor:
    return torch.from_numpy(vector[places]).to(like.dtype)


class _Means:
    """Means over everything that was added under a name, from float64 sums; over finite values only."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, **vectors: Tensor) -> None:
        for name, vector in vectors.items():
            finite = vector.detach().double()
            finite = finite[finite.isfinite()]
            self._sums[name] = self._sums.get(name, 0.0) + float(finite.sum())
            self._counts[name] = self._counts.get(name, 0) + len(finite)

    def values(self) -> dict[str, float]:
        return {name: total / self._counts[name] for name, total in self._sums.items() if self._counts[name]}

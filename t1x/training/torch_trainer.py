"""The PyTorch trainer of one process.

Invariants:
- the behaviour pass and the first pass of an update go through the same mini- and micro-batches, so that with the same weights they
  are equal to the last bit;
- losses are sums over tokens under weights that are known from the whole optimizer step, so micro-batches change no result;
- a pass with retained weights goes through a copy of the actor and never touches the one that is trained.
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
from t1x.training.step_metrics import StepMetrics
from t1x.training.surrogate import clipped_value_error, token_logprobs
from t1x.training.torch_optimizer import TorchOptimizer
from t1x.training.trainer import TorchTrainer

Samples = npt.NDArray[np.int64]


class TorchTrainerWorker:
    """The networks and their optimizers; what each method means stands at `TrainerWorker`."""

    def __init__(
        self, spec: TorchTrainer, algorithm: Algorithm, actor: MoeTransformer, critic: ValueModel | None, steps: int | None
    ) -> None:
        self.version = 0
        self._retained: dict[int, dict[str, Tensor]] = {}
        assert (critic is None) == (algorithm.critic is None), "there is a critic where the algorithm has one"
        self.spec, self.algorithm, self.actor, self.critic = spec, algorithm, actor, critic
        self.actor_optimizer = algorithm.actor.optimizer.build(actor.parameters(), _total(algorithm.actor, steps))
        self.critic_optimizer: TorchOptimizer | None = None
        if critic is not None and algorithm.critic is not None:
            self.critic_optimizer = algorithm.critic.optimizer.build(critic.parameters(), _total(algorithm.critic, steps))

    @torch.no_grad()
    def values(self, batch: Batch) -> TokenVector:
        values = np.empty(batch.loss_tokens)
        for micro in self._microbatches(batch, np.arange(len(batch.trajectories))):
            values[micro.places] = self._values(micro).numpy()
        return values

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        sampled = batch.versions
        versions = np.unique(sampled).tolist()
        if missing := [version for version in versions if version != self.version and version not in self._retained]:
            raise ValueError(
                f"the batch was sampled by policy versions {versions}, of which {missing} aren't retained; the actor is at version "
                f"{self.version}, retained are {sorted(self._retained) or 'none'}. Sample from newer weights or retain them longer"
            )
        logprobs = np.empty(batch.loss_tokens)
        for version in versions:
            actor = self.actor if version == self.version else self._restored(version)
            for part in batch.minibatches(self.algorithm.actor.minibatches, epoch=0):
                self._log_probs_of(actor, part, batch, mode, into=logprobs, where=sampled == version)
        return logprobs

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        update, optimizer = self.algorithm.critic, self.critic_optimizer
        assert update is not None, "the algorithm has a critic"
        assert optimizer is not None
        means, skipped, lr = StepMetrics(), optimizer.skipped, optimizer.lr
        for part in _steps(batch, update):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part):
                values = self._values(micro)
                old, target = _at(micro.places, old_values, values), _at(micro.places, returns, values)
                error = clipped_value_error(values, old, target, update.clip)
                (error * _at(micro.places, weights, error)).sum().backward()
                means.add(loss=error, value_clip_fraction=((values - old).abs() > update.clip).double())
            lr = optimizer.lr
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
            "lr": lr,
            "skipped_steps": float(optimizer.skipped - skipped),
        }
        return {f"critic/{name}": value for name, value in metrics.items()}

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector | None, mode: RouterMode
    ) -> dict[str, float]:
        update, optimizer = self.algorithm.actor, self.actor_optimizer
        assert update.objective.off_policy <= (behaviour_logprobs is not None), "its log-probabilities were asked for"
        means, skipped, lr = StepMetrics(), optimizer.skipped, optimizer.lr
        current = np.empty(batch.loss_tokens)
        if behaviour_logprobs is not None:
            for part in batch.minibatches(update.minibatches, epoch=0)[1:]:
                self._log_probs_of(self.actor, part, batch, mode, into=current)
        for step, part in enumerate(_steps(batch, update)):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part):
                logprobs, entropy = self._logprobs(self.actor, micro, mode)
                advantage = _at(micro.places, advantages, logprobs)
                old = None if behaviour_logprobs is None else _at(micro.places, behaviour_logprobs, logprobs)
                found = update.objective.losses(logprobs, old, advantage, torch.from_numpy(micro.samples))
                (found.losses * _at(micro.places, weights, logprobs)).sum().backward()
                means.add(loss=found.losses, entropy=entropy, **found.watched)
                if step == 0:
                    current[micro.places] = logprobs.detach().numpy()
            lr = optimizer.lr
            means.add(grad_norm=torch.tensor([optimizer.step()]))
        metrics = {**means.values(), "lr": lr, "skipped_steps": float(optimizer.skipped - skipped)}
        gaps = {} if behaviour_logprobs is None else gap_metrics(batch.sampler_logprobs, behaviour_logprobs, current)
        return {f"actor/{name}": value for name, value in metrics.items()} | gaps

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

    def _microbatches(self, batch: Batch, samples: Samples) -> Iterator[MicroBatch]:
        for part in split(batch.lengths, samples, self.spec.tokens_per_microbatch):
            yield pack(batch.trajectories, part, batch.offsets)

    def _restored(self, version: int) -> MoeTransformer:
        """A copy of the actor with retained weights."""
        copy = deepcopy(self.actor).requires_grad_(False)
        load_hf(copy, self._retained[version])
        return copy

    @torch.no_grad()
    def _log_probs_of(
        self,
        actor: MoeTransformer,
        samples: Samples,
        batch: Batch,
        mode: RouterMode,
        into: TokenVector,
        where: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Those of some samples' loss tokens, of these only `where` [M]."""
        for micro in self._microbatches(batch, samples):
            wanted = slice(None) if where is None else where[micro.places]
            if where is None or where[micro.places].any():
                into[micro.places[wanted]] = self._logprobs(actor, micro, mode)[0].numpy()[wanted]

    def _logprobs(self, actor: MoeTransformer, micro: MicroBatch, mode: RouterMode) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies, [m] each."""
        routing = None if mode is RouterMode.FREE else torch.from_numpy(micro.routing)
        token_ids, keep = torch.from_numpy(micro.token_ids), torch.from_numpy(micro.keep)
        hidden = actor(token_ids, lengths=micro.lengths, routing=routing, mode=mode, keep=keep).hidden
        return token_logprobs(actor.logits(hidden), torch.from_numpy(micro.targets), torch.from_numpy(micro.temperatures))

    def _values(self, micro: MicroBatch) -> Tensor:
        assert self.critic is not None, "the algorithm has a critic"
        token_ids, keep = torch.from_numpy(micro.token_ids), torch.from_numpy(micro.keep)
        values: Tensor = self.critic(token_ids, lengths=micro.lengths, keep=keep)
        return values


def _steps(batch: Batch, update: Update) -> Iterator[Samples]:
    """The samples of each optimizer step."""
    for epoch in range(update.epochs):
        yield from batch.minibatches(update.minibatches, epoch)


def _total(update: Update, steps: int | None) -> int | None:
    return None if steps is None else steps * update.epochs * update.minibatches


def _at(places: Samples, vector: TokenVector, like: Tensor) -> Tensor:
    return torch.from_numpy(vector[places]).to(like.dtype)

"""The PyTorch trainer: the only one of its kind, or one rank of several that share every optimizer step.

Invariants:
- the behaviour pass and the first pass of an update go through the same mini- and micro-batches, so that with the same weights they
  are equal to the last bit;
- losses are sums over tokens under weights that are known from the whole optimizer step, so neither micro-batches nor ranks change
  a result; ranks take the same steps with the same sums, a rank without a sample too.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from t1x.model.checkpoint import load_hf, to_hf
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.model.transformer import MoeTransformer
from t1x.model.value import ValueModel
from t1x.parallel.ranks import Ranks
from t1x.training.algorithm import Algorithm, TokenVector, Update
from t1x.training.batch import Batch
from t1x.training.explained_variance import ExplainedVariance, trial_explained_variance
from t1x.training.microbatch import MicroBatch, pack, split, without_loss
from t1x.training.mismatch import gap_metrics
from t1x.training.normalizer import loss_weights
from t1x.training.replayed_rows import ReplayedRows
from t1x.training.retained import RetainedWeights
from t1x.training.step_metrics import StepMetrics
from t1x.training.surrogate import clipped_value_error, token_logprobs
from t1x.training.torch_optimizer import TorchOptimizer
from t1x.training.trainer import TorchTrainer

Samples = npt.NDArray[np.int64]


class TorchTrainerWorker:
    """The networks and their optimizers; what each method means stands at `TrainerWorker`."""

    def __init__(
        self,
        spec: TorchTrainer,
        algorithm: Algorithm,
        actor: MoeTransformer,
        critic: ValueModel | None,
        steps: int | None,
        ranks: Ranks,
    ) -> None:
        assert (critic is None) == (algorithm.critic is None), "there is a critic where the algorithm has one"
        for network in (actor, critic):
            if network is not None:
                network.model.recompute_activations(spec.recompute)
        self.version = 0
        self.spec, self.algorithm, self._ranks = spec, algorithm, ranks
        self.actor = ranks.spread(actor)
        self.critic = None if critic is None else ranks.spread(critic)
        self._replayed: ReplayedRows | None = None
        self._retained = RetainedWeights(ranks, self.actor)
        self.actor_optimizer = algorithm.actor.optimizer.build(self.actor.parameters(), _total(algorithm.actor, steps))
        self.critic_optimizer: TorchOptimizer | None = None
        if self.critic is not None and algorithm.critic is not None:
            self.critic_optimizer = algorithm.critic.optimizer.build(self.critic.parameters(), _total(algorithm.critic, steps))

    @torch.no_grad()
    def values(self, batch: Batch) -> TokenVector:
        assert self.critic is not None, "the algorithm has a critic"
        values = np.zeros(batch.loss_tokens)
        for micro in self._microbatches(batch, np.arange(len(batch.trajectories))):
            values[micro.places] = self._values(self.critic, micro).cpu().numpy()
        self._ranks.settle(self.critic)
        return self._ranks.filled(values)

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        sampled = np.full_like(batch.versions, self.version) if self.algorithm.decoupled else batch.versions
        versions = np.unique(sampled).tolist()
        there = self._retained.versions
        if missing := [version for version in versions if version != self.version and version not in there]:
            raise ValueError(
                f"the batch was sampled by policy versions {versions}, of which {missing} aren't retained; the actor is at version "
                f"{self.version}, retained are {there or 'none'}. Sample from newer weights or retain them longer"
            )
        if mode is not RouterMode.FREE:
            batch.require_records(self.actor.config.routing_layout)
        logprobs, self._replayed = np.zeros(batch.loss_tokens), ReplayedRows(batch)
        for version in versions:
            actor = self.actor if version == self.version else self._retained.restored(version)
            for part in batch.minibatches(self.algorithm.actor.minibatches, epoch=0):
                self._log_probs_of(actor, part, batch, mode, into=logprobs, where=sampled == version, noted=self._replayed)
        return self._ranks.filled(logprobs)

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        update, critic, optimizer = self.algorithm.critic, self.critic, self.critic_optimizer
        assert update is not None, "the algorithm has a critic"
        assert critic is not None
        assert optimizer is not None
        metrics, skipped, lr = StepMetrics(), optimizer.skipped, optimizer.lr
        for part in _steps(batch, update):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part):
                values = self._values(critic, micro)
                old, target = _at(micro.places, old_values, values), _at(micro.places, returns, values)
                error = clipped_value_error(values, old, target, update.clip)
                (error * _at(micro.places, weights, error)).sum().backward()
                metrics.add(loss=error, value_clip_fraction=((values - old).abs() > update.clip).double())
            self._ranks.add_up(critic.parameters())
            lr = optimizer.lr
            metrics.add(grad_norm=torch.tensor([optimizer.step()]))
        explained = {
            "explained_variance": ExplainedVariance.of(returns, old_values).value,
            "explained_variance_trial": trial_explained_variance(returns, old_values, batch.counts, batch.trials),
        }
        found = {
            **StepMetrics.merged(self._ranks.gathered(metrics)).values(),
            **{name: value for name, value in explained.items() if value is not None},
            "value_mean": float(old_values.mean()),
            "return_mean": float(returns.mean()),
            "lr": lr,
            "skipped_steps": float(optimizer.skipped - skipped),
        }
        return {f"critic/{name}": value for name, value in found.items()}

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector | None, mode: RouterMode
    ) -> dict[str, float]:
        update, optimizer = self.algorithm.actor, self.actor_optimizer
        assert update.objective.off_policy <= (behaviour_logprobs is not None), "its log-probabilities were asked for"
        if mode is not RouterMode.FREE:
            batch.require_records(self.actor.config.routing_layout)
        metrics, skipped, lr = StepMetrics(), optimizer.skipped, optimizer.lr
        current = np.zeros(batch.loss_tokens)
        if behaviour_logprobs is not None:
            for part in batch.minibatches(update.minibatches, epoch=0)[1:]:
                self._log_probs_of(self.actor, part, batch, mode, into=current)
        for step, part in enumerate(_steps(batch, update)):
            weights = loss_weights(batch, part, update.normalizer)
            for micro in self._microbatches(batch, part):
                if behaviour_logprobs is not None and self._replayed is not None:
                    self._replayed.require_same(batch, micro, mode)
                replay = self._replay(self.actor, micro, mode)
                logprobs, entropy = self._logprobs(self.actor, micro, replay)
                if len(micro.places):
                    advantage = _at(micro.places, advantages, logprobs)
                    old = None if behaviour_logprobs is None else _at(micro.places, behaviour_logprobs, logprobs)
                    losses = update.objective.losses(logprobs, old, advantage, self._tensor(micro.samples))
                    total = (losses.losses * _at(micro.places, weights, logprobs)).sum()
                    metrics.add(loss=losses.losses, entropy=entropy, **losses.watched)
                    if step == 0:
                        current[micro.places] = logprobs.detach().cpu().numpy()
                else:
                    total = logprobs.sum()  # 0: for the other ranks' sake
                total.backward()
                if replay is not None:
                    replay.finish()
            self._ranks.add_up(self.actor.parameters())
            lr = optimizer.lr
            metrics.add(grad_norm=torch.tensor([optimizer.step()]))
        found = StepMetrics.merged(self._ranks.gathered(metrics)).values()
        found |= {"lr": lr, "skipped_steps": float(optimizer.skipped - skipped)}
        gaps = {}
        if behaviour_logprobs is not None:
            gaps = gap_metrics(batch.sampler_logprobs, behaviour_logprobs, self._ranks.filled(current))
        return {f"actor/{name}": value for name, value in found.items()} | gaps

    def retain(self) -> None:
        self._retained.retain(self.version)

    def release(self, older_than: int) -> None:
        self._retained.release(older_than)

    def weights(self) -> dict[str, Any]:
        return dict(to_hf(self.actor))

    def critic_weights(self) -> dict[str, Any] | None:
        return None if self.critic is None else dict(to_hf(self.critic))

    def load_weights(self, actor: Mapping[str, Any], critic: Mapping[str, Any] | None) -> None:
        load_hf(self.actor, actor)
        if self.critic is not None and critic is not None:
            load_hf(self.critic, critic)

    def state_dict(self) -> dict[str, Any]:
        optimizers = {name: part.state_dict() for name, part in self._optimizers().items()}
        return {**optimizers, "version": self.version, "retained": self._retained.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self._optimizers().items():
            part.load_state_dict(state[name])
        self.version = state["version"]
        self._retained.load_state_dict(state["retained"])

    def close(self) -> None:
        self._retained.release(older_than=self.version + 1)

    def _optimizers(self) -> dict[str, TorchOptimizer]:
        found = {"actor_optimizer": self.actor_optimizer}
        return found if self.critic_optimizer is None else found | {"critic_optimizer": self.critic_optimizer}

    def _microbatches(self, batch: Batch, samples: Samples) -> Iterator[MicroBatch]:
        """Of this rank's share. Where networks are sharded every rank must make equally many passes; the missing ones are without a
        loss token."""
        shares = [
            split(batch.lengths, share, self.spec.tokens_per_microbatch) for share in self._ranks.shares(batch.lengths, samples)
        ]
        mine = shares[self._ranks.rank]
        for part in mine:
            yield pack(batch.trajectories, part, batch.offsets)
        if self._ranks.fully_sharded:
            for _ in range(max(map(len, shares)) - len(mine)):
                yield without_loss(pack(batch.trajectories, samples[:1], batch.offsets))

    @torch.no_grad()
    def _log_probs_of(
        self,
        actor: MoeTransformer,
        samples: Samples,
        batch: Batch,
        mode: RouterMode,
        into: TokenVector,
        where: npt.NDArray[np.bool_] | None = None,
        noted: ReplayedRows | None = None,
    ) -> None:
        """Those of some samples' loss tokens, of these only `where` [M]."""
        for micro in self._microbatches(batch, samples):
            wanted = slice(None) if where is None else where[micro.places]
            if where is None or where[micro.places].any() or self._ranks.fully_sharded:
                replay = self._replay(actor, micro, mode)
                if noted is not None:
                    noted.note(micro, mode)
                into[micro.places[wanted]] = self._logprobs(actor, micro, replay)[0].cpu().numpy()[wanted]
        self._ranks.settle(actor)

    def _replay(self, actor: MoeTransformer, micro: MicroBatch, mode: RouterMode) -> RoutingReplay | None:
        return None if mode is RouterMode.FREE else RoutingReplay(actor, self._tensor(micro.routing), mode)

    def _logprobs(self, actor: MoeTransformer, micro: MicroBatch, replay: RoutingReplay | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies, [m] each."""
        with replay or nullcontext():
            hidden = actor(self._tensor(micro.token_ids), lengths=micro.lengths, keep=self._tensor(micro.keep)).hidden
        return token_logprobs(actor.logits(hidden), self._tensor(micro.targets), self._tensor(micro.temperatures))

    def _values(self, critic: ValueModel, micro: MicroBatch) -> Tensor:
        values: Tensor = critic(self._tensor(micro.token_ids), lengths=micro.lengths, keep=self._tensor(micro.keep))
        return values

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._ranks.device)


def _steps(batch: Batch, update: Update) -> Iterator[Samples]:
    """The samples of each optimizer step."""
    for epoch in range(update.epochs):
        yield from batch.minibatches(update.minibatches, epoch)


def _total(update: Update, steps: int | None) -> int | None:
    return None if steps is None else steps * update.epochs * update.minibatches


def _at(places: Samples, vector: TokenVector, like: Tensor) -> Tensor:
    return torch.from_numpy(vector[places]).to(like)

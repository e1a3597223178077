"""Recomputing activations changes no bit of an update, and replays each micro-batch's own rows."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.router import ReplayRouting, Router, RouterMode
from t1x.parallel.plan import TorchPlan
from t1x.training.batch import Batch
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.training.torch_trainer import TorchTrainerWorker
from t1x.training.trainer import TorchTrainer, TrainerWorker

MODES = [(RouterMode.FREE, RouterMode.FREE), (RouterMode.REPLAY_NO_GRAD, RouterMode.REPLAY_WITH_GRAD)]
PLANS = [
    pytest.param(TorchPlan(), id="1"),
    pytest.param(TorchPlan(data=2), id="2", marks=pytest.mark.soak),
    pytest.param(TorchPlan(data=2, fully_sharded=True), id="2-sharded"),
]


@pytest.fixture
def make(config: Qwen3Moe) -> Iterator[Callable[..., TrainerWorker]]:
    made = []

    def make(**fields: object) -> TrainerWorker:
        adam = Adam(lr=1e-3, clip_norm=1.0)
        critic = config.build_value(seed=1)
        torch.nn.init.normal_(critic.score.weight, std=0.1, generator=torch.Generator().manual_seed(2))
        ppo = PPO(actor_optimizer=adam, critic_optimizer=adam, minibatches=2)
        made.append(TorchTrainer(tokens_per_microbatch=64, **fields).build(config.build(seed=0), critic, ppo))
        return made[-1]

    yield make
    for trainer in made:
        trainer.close()


def step(trainer: TrainerWorker, batch: Batch, behaviour: RouterMode, update: RouterMode) -> dict:
    """Everything that a PPO step gives, and what the networks are after it."""
    values, denominator = trainer.values(batch), trainer.log_probs(batch, behaviour)
    advantages, returns = PPO.advantages(PPO.model_construct(gamma=0.9, lam=0.8, bootstrap="none"), batch, values)
    metrics = trainer.update_critic(batch, values, returns)
    metrics |= trainer.update_actor(batch, advantages, denominator, update)
    return {**metrics, **{f"actor {name}": weight for name, weight in trainer.weights().items()}} | {
        f"critic {name}": weight for name, weight in trainer.critic_weights().items()
    }


@pytest.mark.parametrize("plan", PLANS)
def test_recomputing_activations_changes_no_bit(make, make_batch, plan) -> None:
    """Of losses, norms of gradients and weights, after two optimizer steps of each mode. The first batch leaves ranks without a
    sample."""
    kept, recomputed = make(plan=plan), make(plan=plan, recompute=True)
    for seed, (samples, modes) in enumerate(zip((1, 9, 9), (*MODES, MODES[1]), strict=True)):
        batch = make_batch(np.random.default_rng(seed), samples=samples)
        expected, found = step(kept, batch, *modes), step(recomputed, batch, *modes)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(torch.as_tensor(found[name]), torch.as_tensor(value)), name


def saved_bytes(trainer: TorchTrainerWorker, batch: Batch) -> int:
    """What an actor's forward pass keeps for its backward pass, beside the weights."""
    weights = {parameter.data_ptr() for parameter in trainer.actor.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    ids = torch.from_numpy(np.concatenate([each.token_ids for each in batch.trajectories])).long()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = trainer.actor(ids, lengths=[len(each.token_ids) for each in batch.trajectories])
    assert output.hidden.requires_grad
    return sum(kept.values())


def test_recomputing_keeps_little(make, make_batch) -> None:
    batch = make_batch(np.random.default_rng(0), samples=9)
    assert saved_bytes(make(recompute=True), batch) < 0.3 * saved_bytes(make(), batch)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_pass_whose_rows_are_not_consumed_stops_the_update(make, make_batch, monkeypatch, recompute) -> None:
    """The backward pass of a layer is left out: the optimizer takes no step on what is left."""
    trainer, batch = make(recompute=recompute), make_batch(np.random.default_rng(0))
    before = {name: weight.clone() for name, weight in trainer.weights().items()}
    layer = trainer.actor.model.layers[0]
    compute = layer._compute
    monkeypatch.setattr(layer, "_compute", lambda *args: type(out := compute(*args))(*(part.detach() for part in out)))
    with pytest.raises(RuntimeError, match="backward pass consumed too few rows"):
        trainer.update_actor(batch, np.ones(batch.loss_tokens), batch.sampler_logprobs, RouterMode.REPLAY_WITH_GRAD)
    assert all(torch.equal(weight, before[name]) for name, weight in trainer.weights().items())


@pytest.mark.parametrize("mode", [RouterMode.REPLAY_NO_GRAD, RouterMode.REPLAY_WITH_GRAD])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([1, 1], "sample 2: position 3, layer 1: experts [1, 1] aren't distinct"),
        ([1, 6], "sample 2: position 3, layer 1: [1, 6] of 6 experts"),
        ([0, 0], "sample 2: position 3, layer 1: experts [0, 0] aren't distinct; nothing was recorded for that layer"),
    ],
)
def test_records_that_cannot_be_replayed_are_refused_by_place(make, make_batch, mode, rows, said) -> None:
    batch = make_batch(np.random.default_rng(0))
    experts = batch.trajectories[2].routed_experts
    experts[3, 1] = rows
    trainer = make()
    with pytest.raises(ValueError, match=re.escape(said)):
        trainer.log_probs(batch, mode)
    with pytest.raises(ValueError, match=re.escape(said)):
        trainer.update_actor(batch, np.ones(batch.loss_tokens), batch.sampler_logprobs, mode)
    assert np.isfinite(trainer.log_probs(batch, RouterMode.FREE)).all()


def test_numerator_and_denominator_replay_the_same_rows(make, make_batch) -> None:
    """Invariant 7 (report, section 12.3)."""
    trainer, batch = make(), make_batch(np.random.default_rng(0))
    advantages = np.ones(batch.loss_tokens)
    for behaviour, update in (MODES[0][0], MODES[1][1]), (MODES[1][0], MODES[0][1]):
        denominator = trainer.log_probs(batch, behaviour)
        with pytest.raises(RuntimeError, match=r"only the (numerator|denominator) replays its routing rows"):
            trainer.update_actor(batch, advantages, denominator, update)
    denominator = trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
    rows = batch.trajectories[4].routed_experts
    rows[2, 1] = rows[2, 1, ::-1]
    with pytest.raises(RuntimeError, match="numerator and denominator replay different routing rows"):
        trainer.update_actor(batch, advantages, denominator, RouterMode.REPLAY_WITH_GRAD)


def test_a_router_replays_in_both_passes_or_in_none() -> None:
    for wrong in ({"behaviour": "replay_no_grad"}, {"update": "replay_with_grad"}):
        with pytest.raises(ValidationError, match="let both replay or none"):
            Router(**wrong)
    with pytest.raises(ValidationError, match="has no gradient; use 'replay_with_grad'"):
        Router(behaviour="replay_no_grad", update="replay_no_grad")
    assert ReplayRouting().update is RouterMode.REPLAY_WITH_GRAD

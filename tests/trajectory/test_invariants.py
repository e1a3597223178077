"""The eight invariants, each by the test of its name: it holds for what the project makes, and what breaks it is told."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from random_turns import EXPERTS, Plan, make_turns, plans, rows, stitch, worker_for
from streams import change

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import ReplayableRouter
from t1x.model.router import RouterMode
from t1x.model.routing_layout import RoutingLayout
from t1x.parallel.plan import MegatronPlan
from t1x.parallel.sharding import Sharding, constant
from t1x.training.batch import Batch
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.training.trainer import TorchTrainer
from t1x.trajectory import audit_rows, invariants
from t1x.trajectory.routing import padding_rows
from t1x.trajectory.stitcher import RoutingRecordError

LAYOUT = (2, 2)
PLAN = [Plan(3, 3, False, 0, 0), Plan(2, 2, False, 0, 1), Plan(2, 4, False, 0, 1)]


def with_rows(stream, at, value):
    changed = stream.routed_experts.copy()
    changed[at] = value
    return dataclasses.replace(stream, routed_experts=changed)


@given(plans, st.integers(0, 9))
@promise
def test_1_a_turn_has_a_row_for_every_id_but_the_last(plan, seed):
    for turn in make_turns(plan, LAYOUT, seed):
        assert invariants.rows_of_a_turn(turn) == ""
        done = turn.completion
        longer = np.concatenate([done.routing, done.routing[-1:]])
        assert "is long" in invariants.rows_of_a_turn(change(turn, routing=longer))
        assert ("is short" if len(longer) > 2 else "is absent") in invariants.rows_of_a_turn(change(turn, routing=longer[:-2]))
        assert "is absent" in invariants.rows_of_a_turn(change(turn, routing=longer[:0]))
        assert "from position -1" in invariants.rows_of_a_turn(change(turn, routing_start=-1))


@given(plans, st.integers(0, 9), st.data())
@promise
def test_2_rows_from_the_cache_are_those_captured_before(plan, seed, data):
    """What a cache serves again is taken if it is what was captured, and refused otherwise."""
    first, second = make_turns([plan[0], dataclasses.replace(plan[-1], restart=False, evicted=1.0)], LAYOUT, seed)
    held = len(first.completion.routing)
    served = second.completion.routing.copy()
    served[:held] = first.completion.routing
    assert not invariants.cached_rows(served[:held], first.completion.routing).any()
    stitcher = worker_for([first])
    stitcher.add(first)
    row, layer = data.draw(st.integers(0, held - 1)), data.draw(st.integers(0, 1))
    other = served.copy()
    other[row, layer] = other[row, layer, ::-1]
    assert invariants.cached_rows(other[:held], first.completion.routing).nonzero()[0].tolist() == [row]
    with pytest.raises(RoutingRecordError, match=f"position {row}, layer {layer}: the cache served"):
        stitcher.add(change(second, routing=other, cached_tokens=held))
    stitcher.add(change(second, routing=served, cached_tokens=held))


@given(plans, st.integers(0, 9))
@promise
def test_3_a_stream_has_one_row_fewer_than_ids(plan, seed):
    for stream in stitch(make_turns(plan, LAYOUT, seed)):
        assert invariants.stitched_rows(stream) == ""
        for name in ("token_ids", "loss_mask", "logprobs", "routed_experts"):
            shorter = dataclasses.replace(stream, **{name: getattr(stream, name)[:-1]})
            assert "its streams disagree" in invariants.stitched_rows(shorter)


def test_4_a_row_goes_with_its_token():
    turns = make_turns(PLAN, LAYOUT)
    (stream,) = stitch(turns)
    prompt, captured = turns[0].prompt_ids, turns[0].completion.routing
    every = slice(0, len(prompt) - 1)
    assert not audit_rows.rows_of_tokens(stream, every, captured[every], prompt[every]).any()
    shifted = audit_rows.rows_of_tokens(stream, slice(1, len(prompt)), captured[every], prompt[every])
    assert shifted.all(), "row j goes with token j"
    other = with_rows(stream, 1, stream.routed_experts[1, :, ::-1])
    assert audit_rows.rows_of_tokens(other, every, captured[every], prompt[every]).tolist() == [False, True, False]
    ids = prompt.copy()
    ids[2] += 1
    assert audit_rows.rows_of_tokens(stream, every, captured[every], ids[every]).tolist() == [False, False, True]
    assert audit_rows.rows_of_tokens(stream, every, None, prompt[every]).all()


def test_5_tokens_and_rows_go_through_one_sharding():
    """That un-sharding gives every stream back is shown in tests/parallel; here, that the check sees where it doesn't."""
    context, tensor, samples = 2, 3, stitch(make_turns([*PLAN, Plan(3, 2, True, 0, 1)], LAYOUT))
    sharding = Sharding(MegatronPlan(context=context, tensor=tensor, granularity=2), tuple(len(s.token_ids) for s in samples))
    layout = RoutingLayout(*LAYOUT, EXPERTS)
    ranks = [(c, t) for c in range(context) for t in range(tensor)]
    tokens = {rank: sharding.shard([s.token_ids for s in samples], constant(0), rank) for rank in ranks}
    routing = {
        rank: sharding.shard([s.routed_experts for s in samples], lambda first, n: padding_rows(layout, first, n), rank)
        for rank in ranks
    }
    assert invariants.one_sharding(sharding, tokens, routing, samples) == ""
    wrong = {rank: np.roll(shard, 1, axis=0) for rank, shard in routing.items()}
    assert "un-sharding doesn't give its routed_experts back" in invariants.one_sharding(sharding, tokens, wrong, samples)


def test_6_rows_of_loss_positions_are_of_the_turn_that_sampled_them():
    turns = make_turns(PLAN, LAYOUT)
    (stream,) = stitch(turns)
    start, turn = len(turns[1].prompt_ids), turns[1]
    positions, offsets = start + np.arange(2), np.arange(2)
    assert not audit_rows.rows_of_loss_positions(stream.routed_experts, positions, turn, offsets).any()
    of_another_turn = change(turn, routing=rows(np.random.default_rng(7), len(turn.completion.routing), LAYOUT))
    assert audit_rows.rows_of_loss_positions(stream.routed_experts, positions, of_another_turn, offsets).all()
    other = with_rows(stream, start, stream.routed_experts[start, :, ::-1])
    assert audit_rows.rows_of_loss_positions(other.routed_experts, positions, turn, offsets).tolist() == [False, True]
    assert audit_rows.rows_of_loss_positions(stream.routed_experts, positions, change(turn, routing_start=99), offsets).all()


MODEL = Qwen3Moe(
    vocab_size=64,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    num_experts=EXPERTS,
    num_experts_per_tok=2,
    moe_intermediate_size=8,
    router_init_std=1.0,
)


@pytest.fixture
def passes(monkeypatch):
    """What every router of a pass was given and chose: [(router, logits, experts)]."""
    seen = []
    forward = ReplayableRouter.forward

    def watched(router, x):
        choice = forward(router, x)
        seen.append((router, choice.logits.detach().numpy(), choice.experts.numpy()))
        return choice

    monkeypatch.setattr(ReplayableRouter, "forward", watched)
    return seen


@pytest.fixture
def training():
    adam = Adam(lr=1e-3)
    networks = MODEL.build(seed=0), MODEL.build_value(seed=1)
    trainer = TorchTrainer(recompute=True).build(*networks, PPO(actor_optimizer=adam, critic_optimizer=adam))
    (stream,) = stitch(make_turns([dataclasses.replace(step, version=0) for step in PLAN], LAYOUT))
    return trainer, Batch([stream], np.array([1.0]), np.array([0]), seed=0)


def test_7_denominator_and_numerator_replay_the_same_rows(training, passes):
    trainer, batch = training
    record = batch.trajectories[0].routed_experts
    old = trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
    denominator = np.stack([experts for _, _, experts in passes], axis=1)
    passes.clear()
    trainer.update_actor(batch, np.ones(batch.loss_tokens), old, RouterMode.REPLAY_WITH_GRAD)
    numerator = np.stack([experts for _, _, experts in passes[:2]], axis=1)
    assert invariants.same_rows_in_both_passes([denominator], [numerator]) == ""
    assert (numerator == record).all()
    swapped = numerator[:, :, ::-1]
    assert "sample 1: numerator and denominator replay different" in invariants.same_rows_in_both_passes(
        [record, denominator], [record, swapped]
    )
    assert "only the numerator replays" in invariants.same_rows_in_both_passes([None], [numerator])
    assert "only the denominator replays" in invariants.same_rows_in_both_passes([denominator], [None])
    assert invariants.same_rows_in_both_passes([None], [None]) == ""


def test_8_the_critic_routes_by_its_own_logits(training, passes):
    """The critic routes by its own logits beside an actor that replays, in its recomputation too; a replayed pass doesn't."""
    trainer, batch = training
    values = trainer.values(batch)
    trainer.update_critic(batch, values, values + 1)
    assert len(passes) == 3 * MODEL.num_hidden_layers, "values, the update, its recomputation"
    assert all(invariants.routes_freely(experts, logits) == "" for _, logits, experts in passes)
    passes.clear()
    old = trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
    trainer.update_actor(batch, np.ones(batch.loss_tokens), old, RouterMode.REPLAY_WITH_GRAD)
    assert len(passes) == 3 * MODEL.num_hidden_layers
    assert all("its experts aren't those of its own largest" in invariants.routes_freely(e, logits) for _, logits, e in passes)
    passes.clear()
    trainer.log_probs(batch, RouterMode.FREE)
    assert all(invariants.routes_freely(experts, logits) == "" for _, logits, experts in passes)

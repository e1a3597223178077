"""From turns to the pass that trains: tokens, masks and routing go through the same offsets all the way (invariants 4 to 7)."""

import functools

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from promises import promise
from streams import stitch
from worlds import worlds_of

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.model.routing_layout import RoutingLayout
from t1x.parallel.plan import MegatronPlan
from t1x.parallel.sharding import Sharding, constant
from t1x.training.batch import Batch
from t1x.training.microbatch import pack, split
from t1x.trajectory.routing import padding_rows

LAYOUT = RoutingLayout(layers=2, k=2, experts=8)
trials = st.lists(worlds_of(st.just(LAYOUT), turns=3), min_size=1, max_size=2)
plans = st.builds(MegatronPlan, tensor=st.integers(1, 3), context=st.integers(1, 3), granularity=st.integers(1, 4))


@functools.cache
def network():
    torch.set_num_threads(1)
    config = Qwen3Moe(
        vocab_size=400,
        hidden_size=16,
        num_hidden_layers=LAYOUT.layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_experts=LAYOUT.experts,
        num_experts_per_tok=LAYOUT.k,
        moe_intermediate_size=8,
        router_init_std=1.0,
    )
    assert config.routing_layout == LAYOUT
    return config.build(seed=0)


def batch_of(trials):
    """(the batch, for each of its samples the rows that the turns of its loss tokens captured for them)"""
    samples, captured, of = [], [], []
    for index, world in enumerate(trials):
        got, first = stitch(world), 0
        for chunk, trajectory in enumerate(got.trajectories):
            turns = got.taken[first : first + len(trajectory.boundaries) + (chunk == 0)]
            first += len(turns)
            if trajectory.loss_mask.any():
                samples.append(trajectory)
                of.append(index)
                rows = []
                for turn in turns:
                    begins = len(turn.prompt_ids) - 1 - turn.completion.routing_start
                    rows.append(turn.completion.routing[begins : begins + len(turn.completion.ids)])
                captured.append(np.concatenate(rows))
    assume(samples)
    return Batch(samples, np.zeros(len(trials)), np.array(of), seed=0), captured


@given(trials, st.integers(1, 400))
@promise
def test_a_pack_holds_every_position_with_its_own_row_and_target(trials, budget):
    batch, _ = batch_of(trials)
    seen = []
    for part in split(batch.lengths, np.arange(len(batch.trajectories)), budget):
        micro = pack(batch.trajectories, part, batch.offsets)
        at, loss = 0, 0
        for number, index in enumerate(part):
            sample = batch.trajectories[index]
            place = batch.offsets[index]
            for j in range(len(sample.token_ids) - 1):
                assert micro.token_ids[at] == sample.token_ids[j]
                assert micro.routing[at].tolist() == sample.routed_experts[j].tolist()
                assert micro.keep[at] == sample.loss_mask[j + 1]
                if micro.keep[at]:
                    assert micro.targets[loss] == sample.token_ids[j + 1]
                    assert (micro.samples[loss], micro.places[loss]) == (number, place)
                    assert batch.sampler_logprobs[place] == sample.logprobs[j + 1]
                    loss += 1
                    place += 1
                at += 1
        assert at == len(micro.token_ids) == len(micro.routing) == len(micro.keep) == sum(micro.lengths)
        assert loss == len(micro.targets) == len(micro.places) == len(micro.samples)
        seen += micro.places.tolist()
    assert sorted(seen) == list(range(batch.loss_tokens))


@given(trials, plans)
@promise
def test_shards_hold_every_id_with_its_own_row_and_give_them_back(trials, plan):
    """Invariant 5. Padding rows are k distinct experts and share the load."""
    batch, _ = batch_of(trials)
    samples = batch.trajectories
    sharding = Sharding(plan, tuple(len(sample.token_ids) for sample in samples))
    ranks = [(context, tensor) for context in range(plan.context) for tensor in range(plan.tensor)]
    ends = np.cumsum(sharding.lengths)
    number = [np.arange(end - length, end) for end, length in zip(ends, sharding.lengths, strict=True)]
    pad = functools.partial(padding_rows, LAYOUT)
    ids = {rank: sharding.shard([sample.token_ids for sample in samples], constant(0), rank) for rank in ranks}
    masks = {rank: sharding.shard([sample.loss_mask for sample in samples], constant(0), rank) for rank in ranks}
    rows = {rank: sharding.shard([sample.routed_experts for sample in samples], pad, rank) for rank in ranks}
    where = {rank: sharding.shard(number, constant(-1), rank) for rank in ranks}
    every_id = np.concatenate([sample.token_ids for sample in samples])
    every_mask = np.concatenate([sample.loss_mask for sample in samples])
    none = np.full((1, LAYOUT.layers, LAYOUT.k), -1)
    every_row = np.concatenate([part for sample in samples for part in (sample.routed_experts.astype(int), none)])
    padding = []
    for rank in ranks:
        assert len(ids[rank]) == len(masks[rank]) == len(rows[rank])
        for at, position in enumerate(where[rank].tolist()):
            real = position >= 0
            assert ids[rank][at] == (every_id[position] if real else 0)
            assert masks[rank][at] == (every_mask[position] if real else 0)
            if real and every_row[position].min() >= 0:
                assert rows[rank][at].tolist() == every_row[position].tolist()
            else:
                padding.append(rows[rank][at])
    assert sorted(p for rank in ranks for p in where[rank].tolist() if p >= 0) == list(range(len(every_id)))
    for layer in range(LAYOUT.layers):
        assert all(len(set(row[layer].tolist())) == LAYOUT.k for row in padding)
        load = np.bincount(np.array([row[layer] for row in padding]).flatten(), minlength=LAYOUT.experts)
        assert load.max() - load.min() <= 1
    for name, shards in (("token_ids", ids), ("loss_mask", masks), ("routed_experts", rows)):
        back = sharding.unshard(shards, short=name == "routed_experts")
        assert [stream.tolist() for stream in back] == [getattr(sample, name).tolist() for sample in samples]


@given(trials, st.integers(1, 400))
@promise
@torch.no_grad()
def test_a_replayed_pass_goes_through_the_experts_that_sampled_each_loss_token(trials, budget):
    """Each loss position in each layer, against what its own turn captured, in the router's slot order; and a pack's hidden states
    are those of its samples alone."""
    batch, captured = batch_of(trials)
    policy = network()
    for part in split(batch.lengths, np.arange(len(batch.trajectories)), budget):
        micro = pack(batch.trajectories, part, batch.offsets)
        replay = RoutingReplay(policy, torch.from_numpy(micro.routing), RouterMode.REPLAY_NO_GRAD)
        with replay:
            packed = policy(torch.from_numpy(micro.token_ids), lengths=micro.lengths)
        replay.finish()
        used = packed.routed_experts[torch.from_numpy(micro.keep)].tolist()
        assert used == np.concatenate([captured[index] for index in part]).tolist()
        for index, hidden in zip(part, packed.hidden.split(micro.lengths), strict=True):
            sample = batch.trajectories[index]
            alone = RoutingReplay(policy, torch.from_numpy(sample.routed_experts.copy()), RouterMode.REPLAY_NO_GRAD)
            with alone:
                due = policy(torch.from_numpy(sample.token_ids[:-1].astype(np.int64)), lengths=[len(sample.token_ids) - 1])
            torch.testing.assert_close(hidden, due.hidden, atol=1e-5, rtol=1e-5)

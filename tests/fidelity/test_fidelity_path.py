"""From turns to the pass that trains: tokens, masks and routing go through the same offsets all the way (invariants 4, 6 and 7)."""

import functools

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from promises import promise
from stitched_world import stitch_world
from worlds import worlds_of

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.model.routing_layout import RoutingLayout
from t1x.training.batch import Batch
from t1x.training.microbatch import pack, split

LAYOUT = RoutingLayout(layers=2, k=2, experts=8)
trials = st.lists(worlds_of(st.just(LAYOUT), turns=3), min_size=1, max_size=2)


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
        for trajectory, turns in stitch_world(world).chunks:
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
        at, targets, places, numbers = 0, [], [], []
        for number, index in enumerate(part):
            sample = batch.trajectories[index]
            here, loss = slice(at, at + len(sample.token_ids) - 1), sample.loss_mask[1:]
            at = here.stop
            assert micro.token_ids[here].tolist() == sample.token_ids[:-1].tolist()
            assert micro.routing[here].tolist() == sample.routed_experts.tolist()
            assert micro.keep[here].tolist() == loss.tolist()
            own = batch.offsets[index] + np.arange(loss.sum())
            assert batch.sampler_logprobs[own].tolist() == sample.logprobs[1:][loss].tolist()
            targets += sample.token_ids[1:][loss].tolist()
            places += own.tolist()
            numbers += [number] * len(own)
        assert at == len(micro.token_ids) == len(micro.routing) == len(micro.keep) == sum(micro.lengths)
        assert (micro.targets.tolist(), micro.places.tolist(), micro.samples.tolist()) == (targets, places, numbers)
        seen += places
    assert sorted(seen) == list(range(batch.loss_tokens))


@given(trials, st.integers(1, 400))
@promise
@torch.no_grad()
def test_a_replayed_pass_goes_through_the_experts_that_sampled_each_loss_token(trials, budget):
    """Each loss position in each layer, against what its own turn captured, in the router's slot order."""
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

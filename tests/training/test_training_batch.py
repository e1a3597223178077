from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.training.batch import Batch
from t1x.training.microbatch import pack, split
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import VersionSpan


def one(trajectory, **changes):
    return Batch([replace(trajectory, **changes)], np.zeros(1), np.zeros(1, dtype=int), seed=0)


@pytest.fixture
def trajectory(make_trajectory):
    return make_trajectory(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("stream", "said"),
    [("token_ids", "token ids"), ("loss_mask", "loss mask"), ("logprobs", "log-probabilities"), ("routed_experts", "routing rows")],
)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_sample_whose_streams_disagree_is_refused(trajectory, stream, said, change):
    values = getattr(trajectory, stream)
    values = values[:-1] if change < 0 else np.concatenate([values, values[-1:]])
    with pytest.raises(ValueError, match=rf"sample 0: its streams disagree.*{len(values)}[a-z ]* {said}"):
        one(trajectory, **{stream: values})


def test_unsound_samples_are_refused_by_name(trajectory):
    n = len(trajectory.token_ids)
    first = np.arange(n) == 0
    nothing, zeros = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.float32)
    with pytest.raises(ValueError, match="no token carries loss"):
        one(trajectory, loss_mask=nothing, logprobs=zeros)
    with pytest.raises(ValueError, match="first token carries loss"):
        one(trajectory, loss_mask=first, logprobs=zeros)
    with pytest.raises(ValueError, match="not finite"):
        one(trajectory, logprobs=np.where(trajectory.loss_mask, np.float32("nan"), np.float32(0)))
    with pytest.raises(ValueError, match="where the mask is false"):
        one(trajectory, logprobs=np.full(n, -1, dtype=np.float32))
    with pytest.raises(ValueError, match="temperature"):
        one(trajectory, temperature=0.0)


def test_the_chunks_of_a_trial_share_its_reward_and_a_trial_without_any_keeps_its_own(make_trajectory):
    chunks = [make_trajectory(np.random.default_rng(seed)) for seed in range(3)]
    silent = replace(chunks[0], loss_mask=np.zeros_like(chunks[0].loss_mask))
    trials = [
        Trial(name, Task(name, "", (), (), ()), (), ended_by, None, reward, tuple(parts), ())
        for name, ended_by, reward, parts in (
            ("a", EndedBy.DONE, 0.1, chunks[:1]),
            ("b", EndedBy.AGENT_DEADLINE, 0.2, []),
            ("c", EndedBy.CONTEXT, 0.3, [chunks[1], silent, chunks[2]]),
        )
    ]
    batch = Batch.of(trials, seed=4)
    assert batch.trajectories == tuple(chunks)
    assert (batch.rewards.tolist(), batch.trials.tolist(), batch.seed) == ([0.1, 0.2, 0.3], [0, 2, 2], 4)
    assert batch.cut_off.tolist() == [False, True, True]


def test_versions_are_those_of_the_spans(make_batch):
    batch = make_batch(np.random.default_rng(6), samples=2)
    first, second = batch.trajectories
    n = len(first.token_ids)
    spans = (VersionSpan(0, n // 2, 7), VersionSpan(n // 2, n, 7))
    batch = Batch(
        [replace(first, versions=spans), replace(second, versions=(VersionSpan(0, n, 7),))], batch.rewards, batch.trials, 0
    )
    assert batch.versions.tolist() == [7] * batch.loss_tokens
    with pytest.raises(ValueError, match="sample 0: a loss token is of no policy version"):
        one(first, versions=spans[:1])


def test_rewards_that_do_not_fit_are_refused(trajectory):
    with pytest.raises(ValueError, match="rewards have shape"):
        Batch([trajectory], np.zeros((1, 1)), np.zeros(1, dtype=int), seed=0)
    with pytest.raises(ValueError, match="and trials"):
        Batch([trajectory], np.zeros(2), np.zeros(2, dtype=int), seed=0)
    with pytest.raises(ValueError, match="trials 0 to 2, but there are 2 rewards"):
        Batch([trajectory] * 2, np.zeros(2), np.array([0, 2]), seed=0)
    with pytest.raises(ValueError, match="trial 1: the reward is not finite"):
        Batch([trajectory] * 2, np.array([0, np.inf]), np.arange(2), seed=0)
    with pytest.raises(ValueError, match="at least one sample"):
        Batch([], np.zeros(0), np.zeros(0, dtype=int), seed=0)


def test_flat_vectors_are_sample_major_in_position_order(make_batch):
    batch = make_batch(np.random.default_rng(1), samples=5)
    expected = [
        float(trajectory.logprobs[j])
        for trajectory in batch.trajectories
        for j in range(len(trajectory.token_ids))
        if trajectory.loss_mask[j]
    ]
    assert batch.sampler_logprobs.tolist() == expected
    assert batch.loss_tokens == len(expected)
    for index, trajectory in enumerate(batch.trajectories):
        assert batch.sampler_logprobs[batch.offsets[index]] == trajectory.logprobs[trajectory.loss_mask][0]


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**31))
def test_minibatches_visit_every_sample_once_in_a_seeded_order(samples, parts, seed):
    batch = object.__new__(Batch)
    object.__setattr__(batch, "trajectories", [None] * samples)
    object.__setattr__(batch, "seed", seed)
    made = batch.minibatches(parts, epoch=1)
    assert len(made) == min(parts, samples)
    assert sorted(np.concatenate(made)) == list(range(samples))
    assert max(map(len, made)) - min(map(len, made)) <= 1
    assert all((a == b).all() for a, b in zip(made, batch.minibatches(parts, epoch=1), strict=True))


def test_epochs_differ_in_order(make_batch):
    batch = make_batch(np.random.default_rng(2), samples=12)
    assert batch.minibatches(3, epoch=0)[0].tolist() != batch.minibatches(3, epoch=1)[0].tolist()


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 100))
def test_split_keeps_every_sample_and_the_budget_and_wastes_less_than_a_sample(lengths, budget):
    lengths = np.array(lengths, dtype=np.int64)
    parts = split(lengths, np.arange(len(lengths)), budget)
    assert sorted(np.concatenate([*parts, []])) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or lengths[part].sum() <= budget
    for part, following in pairwise(parts):
        assert lengths[part].sum() + lengths[following[0]] > budget


def test_pack_takes_every_stream_through_the_same_offsets(make_batch):
    batch = make_batch(np.random.default_rng(3), samples=6, trailing=2)
    indices = np.array([4, 0, 5])
    micro = pack(batch.trajectories, indices, batch.offsets)
    position = at = 0
    for row, index in enumerate(indices):
        trajectory = batch.trajectories[index]
        flat = batch.offsets[index]
        assert micro.lengths[row] == len(trajectory.token_ids) - 1
        for j in range(micro.lengths[row]):
            assert micro.token_ids[position] == trajectory.token_ids[j]
            assert (micro.routing[position] == trajectory.routed_experts[j]).all()
            assert micro.keep[position] == trajectory.loss_mask[j + 1]
            if micro.keep[position]:
                assert micro.targets[at] == trajectory.token_ids[j + 1]
                assert micro.temperatures[at] == trajectory.temperature
                assert micro.samples[at] == row
                assert micro.places[at] == flat
                at, flat = at + 1, flat + 1
            position += 1
    assert position == len(micro.token_ids) == len(micro.keep) == len(micro.routing)
    assert at == len(micro.targets) == len(micro.places) == len(micro.samples)

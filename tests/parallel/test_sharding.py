import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.model.routing_layout import RoutingLayout
from t1x.parallel.plan import MegatronPlan
from t1x.parallel.sharding import Sharding, constant
from t1x.trajectory.routing import padding_rows

LAYOUT = RoutingLayout(layers=2, k=3, experts=7)


def reference(samples, tensor, context, granularity):
    """Π step by step over lists: (context rank, tensor rank) to items, with None for padding. Samples have one item a token."""
    shards = {}
    for r in range(context):
        packed = []
        for sample in samples:
            padded = list(sample)
            while len(padded) % (2 * context):
                padded.append(None)
            chunk = len(padded) // (2 * context)
            chunks = [padded[i * chunk : (i + 1) * chunk] for i in range(2 * context)]
            packed += chunks[r] + chunks[2 * context - 1 - r]
        while len(packed) % (tensor * granularity):
            packed.append(None)
        part = len(packed) // tensor
        for t in range(tensor):
            shards[r, t] = packed[t * part : (t + 1) * part]
    return shards


degrees = st.builds(MegatronPlan, tensor=st.integers(1, 3), context=st.integers(1, 4), granularity=st.integers(1, 5))
packs = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def streams(lengths, seed):
    """Token ids, loss masks and routing of random samples."""
    rng = np.random.default_rng(seed)
    ids = [rng.integers(1, 10**6, n).astype(np.int32) for n in lengths]
    masks = [rng.random(n) < 0.5 for n in lengths]
    rows = [rng.permuted(np.tile(np.arange(7, dtype=np.uint8), (n - 1, 2, 1)), axis=2)[..., :3] for n in lengths]
    return ids, masks, rows


@given(degrees, packs, st.integers(0, 9))
@promise
def test_shards_are_those_of_the_step_by_step_reference(plan, lengths, seed):
    ids, masks, rows = streams(lengths, seed)
    sharding = Sharding(plan, tuple(lengths))
    sizes = plan.tensor, plan.context, plan.granularity
    expected_ids, expected_masks = reference(ids, *sizes), reference(masks, *sizes)
    expected_rows = reference([[*sample, None] for sample in rows], *sizes)  # pad_1
    padded = 0
    for context in range(plan.context):
        for tensor in range(plan.tensor):
            rank = context, tensor
            assert sharding.shard(ids, constant(0), rank).tolist() == [i if i is not None else 0 for i in expected_ids[rank]]
            assert sharding.shard(masks, constant(0), rank).tolist() == [bool(m) for m in expected_masks[rank]]
            due = []
            for row in expected_rows[rank]:
                due.append(padding_rows(LAYOUT, padded, 1)[0] if row is None else row)
                padded += row is None
            got = sharding.shard(rows, lambda first, n: padding_rows(LAYOUT, first, n), rank)
            assert got.dtype == np.uint8
            assert (got == np.array(due)).all()


@given(degrees, packs, st.integers(0, 9))
@promise
def test_unsharding_gives_every_stream_back(plan, lengths, seed):
    sharding = Sharding(plan, tuple(lengths))
    ranks = [(context, tensor) for context in range(plan.context) for tensor in range(plan.tensor)]
    ids, masks, rows = streams(lengths, seed)
    for samples, padding, short in (
        (ids, constant(0), False),
        (masks, constant(1), False),
        (rows, lambda first, n: padding_rows(LAYOUT, first, n), True),
    ):
        back = sharding.unshard({rank: sharding.shard(samples, padding, rank) for rank in ranks}, short=short)
        assert len(back) == len(samples)
        for got, sample in zip(back, samples, strict=True):
            assert got.dtype == sample.dtype
            assert np.array_equal(got, sample)


def test_a_worked_example():
    """κ = 2, τ = 2, ν = 3: samples of 7 and 2 tokens are padded to 8 and 4 and cut into 4 chunks of 2 and of 1; context rank 0 gets
    chunks 0 and 3, rank 1 chunks 1 and 2."""
    sharding = Sharding(MegatronPlan(tensor=2, context=2, granularity=3), (7, 2))
    ids = [np.array([10, 11, 12, 13, 14, 15, 16]), np.array([20, 21])]
    assert sharding.shard(ids, constant(0), (0, 0)).tolist() == [10, 11, 16]
    assert sharding.shard(ids, constant(0), (0, 1)).tolist() == [0, 20, 0]
    assert sharding.shard(ids, constant(0), (1, 0)).tolist() == [12, 13, 14]
    assert sharding.shard(ids, constant(0), (1, 1)).tolist() == [15, 21, 0]
    rows = [np.arange(6), np.array([6])]  # of positions 0 to 5 of the first sample and 0 of the second
    assert sharding.shard(rows, constant(-1), (0, 0)).tolist() == [0, 1, -1]
    assert sharding.shard(rows, constant(-1), (0, 1)).tolist() == [-1, 6, -1]
    assert sharding.shard(rows, constant(-1), (1, 0)).tolist() == [2, 3, 4]
    assert sharding.shard(rows, constant(-1), (1, 1)).tolist() == [5, -1, -1]


@pytest.mark.parametrize("context", [2, 3, 4])
def test_one_sample_is_sliced_as_megatron_slices_it(context, monkeypatch):
    utils = pytest.importorskip("megatron.core.utils", reason="Megatron-Core isn't installed")
    torch = pytest.importorskip("torch")
    tokens = np.arange(1, 24 + 1)
    sharding = Sharding(MegatronPlan(context=context, granularity=1), (24,))
    monkeypatch.setattr(utils.parallel_state, "get_context_parallel_world_size", lambda: context)
    for rank in range(context):
        monkeypatch.setattr(utils.parallel_state, "get_context_parallel_rank", lambda rank=rank: rank)
        theirs = utils.get_batch_on_this_cp_rank({"tokens": torch.tensor(tokens)[None]})["tokens"][0]
        assert sharding.shard([tokens], constant(0), (rank, 0)).tolist() == theirs.tolist()


@given(degrees, packs)
@promise
def test_a_row_stands_where_its_token_stands(plan, lengths):
    """Invariants 4 and 5: in every shard, row j stands at token j's place."""
    sharding = Sharding(plan, tuple(lengths))
    tokens = [np.arange(1, n + 1) + 1000 * sample for sample, n in enumerate(lengths)]
    for context in range(plan.context):
        for tensor in range(plan.tensor):
            shard = sharding.shard(tokens, constant(0), (context, tensor))
            rows = sharding.shard([sample[:-1] for sample in tokens], constant(0), (context, tensor))
            last = np.isin(shard, [sample[-1] for sample in tokens])
            assert (rows == np.where(last, 0, shard)).all()


def test_padding_rows_overload_no_expert_over_all_ranks():
    sharding = Sharding(MegatronPlan(tensor=2, context=4, granularity=5), (3, 17, 6, 9))
    ranks = [(context, tensor) for context in range(4) for tensor in range(2)]
    rows = [np.full((n - 1, 2, 3), 7, np.uint8) for n in sharding.lengths]
    found = np.concatenate([sharding.shard(rows, lambda first, n: padding_rows(LAYOUT, first, n), rank) for rank in ranks])
    loads = np.bincount(found[:, 0].ravel(), minlength=8)[:7]
    assert loads.sum() == 3 * (len(found) - sum(sharding.lengths) + 4)
    assert loads.max() - loads.min() <= 1


def test_streams_of_another_length_are_refused():
    sharding = Sharding(MegatronPlan(context=2), (4, 6))
    for rows in ([4, 5], [3, 6], [5, 7], [4], [4, 6, 1]):
        with pytest.raises(ValueError, match=r"samples of \[4, 6\] tokens need as many rows, or one fewer each"):
            sharding.shard([np.zeros(n) for n in rows], constant(0), (0, 0))
    with pytest.raises(ValueError, match="at least one token"):
        Sharding(MegatronPlan(), (3, 0))


def test_a_missing_shard_is_refused():
    sharding = Sharding(MegatronPlan(context=2), (4, 6))
    shards = {(rank, 0): sharding.shard([np.zeros(4), np.zeros(6)], constant(0), (rank, 0)) for rank in range(2)}
    for wrong in ({(0, 0): shards[0, 0]}, {**shards, (1, 0): shards[1, 0][:-1]}):
        with pytest.raises(ValueError, match=r"needs 128 rows of every rank; \(context, tensor\) = \(1, 0\)"):
            sharding.unshard(wrong)

"""What is sampled is the softmax, from streams of the requests' own."""

import asyncio
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineWorker, Sampling
from t1x.engine.sampler import cut, sample, uniforms
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe

torch.set_num_threads(1)

SPEC = Qwen3Moe(
    vocab_size=7,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=8,
    max_position_embeddings=64,
    embedding_init_std=1.0,
)
POLICY = SPEC.build(seed=2)
PROMPT = np.array([3, 1, 4, 1, 5], dtype=np.int32)


def build(slots: int = 64, dtype: str = "float32") -> EngineWorker:
    return EmbeddedEngine(max_sessions=slots, context_length=64, dtype=dtype).build(SPEC, to_hf(POLICY))


def run(worker: EngineWorker, requests: list[Sampling]) -> list[Completion]:
    async def main() -> list[Completion]:
        return await asyncio.gather(*(worker.generate(PROMPT, sampling, str(i)) for i, sampling in enumerate(requests)))

    return asyncio.run(main())


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_samples_follow_the_softmax(temperature: float) -> None:
    """Chi-square of the first token over 3,000 seeds; 24.1 is the 99.95 % quantile for 6 degrees of freedom."""
    completions = run(build(), [Sampling(Decoding(temperature), 1, (), seed) for seed in range(3000)])
    with torch.no_grad():
        hidden = POLICY(torch.from_numpy(PROMPT.astype(np.int64))[None]).hidden[0, -1]
        expected = (POLICY.logits(hidden) / temperature).softmax(-1).numpy() * 3000
    observed = np.bincount([c.ids[0] for c in completions], minlength=7)
    assert expected.min() > 5
    assert ((observed - expected) ** 2 / expected).sum() < 24.1


def test_uniforms_are_uniform_and_free_of_order() -> None:
    """Invariant: what is sampled depends on the request's seed, the position and the logits alone."""
    seeds = np.arange(200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    grid = np.stack([uniforms(seeds, np.full(200, position)) for position in range(50)])
    assert grid.min() >= 0
    assert grid.max() < 1
    counts = np.histogram(grid, bins=20, range=(0, 1))[0]
    assert ((counts - 500) ** 2 / 500).sum() < 45.3, "chi-square, 19 degrees of freedom, 99.94 %"
    assert abs(np.corrcoef(grid[:-1].ravel(), grid[1:].ravel())[0, 1]) < 0.04
    assert abs(np.corrcoef(grid[:, :-1].ravel(), grid[:, 1:].ravel())[0, 1]) < 0.04
    assert len(np.unique(grid)) == grid.size
    np.testing.assert_array_equal(uniforms(seeds[::-1], np.full(200, 7))[::-1], grid[7])


def test_sample_never_takes_what_has_no_probability() -> None:
    logits = torch.tensor([[-np.inf, 0.0, -np.inf, 1.0, -np.inf]]).repeat(4, 1)
    ids, logprobs = sample(logits, np.ones(4, dtype=np.float32), np.array([0.0, 0.2, 0.9, 1 - 2.0**-40]))
    assert ids.tolist() == [1, 1, 3, 3]
    torch.testing.assert_close(logprobs, torch.tensor([0.0, 0.0, 1.0, 1.0]) - np.log(1 + np.e))


def test_greedy_rows_stand_beside_sampled_ones() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]])
    ids, logprobs = sample(logits, np.array([0.0, 0.5], dtype=np.float32), np.array([0.001, 0.001]))
    assert ids.tolist() == [1, 0]
    torch.testing.assert_close(logprobs, torch.stack([logits[0].log_softmax(-1)[1], (logits[1] / 0.5).log_softmax(-1)[0]]))


@pytest.mark.parametrize(("top_p", "top_k"), [(1.0, 3), (0.7, 0), (0.8, 4)])
def test_samples_of_a_cut_distribution_follow_what_is_left_of_it(top_p: float, top_k: int) -> None:
    """Chi-square as above; log-probabilities are those of the distribution sampled from."""
    completions = run(build(), [Sampling(Decoding(1.5, top_p, top_k), 1, (), seed) for seed in range(3000)])
    with torch.no_grad():
        logits = POLICY.logits(POLICY(torch.from_numpy(PROMPT.astype(np.int64))[None]).hidden[0, -1])
    expected = np.array(slowly(logits.tolist(), 1.5, top_p, top_k))
    observed = np.bincount([c.ids[0] for c in completions], minlength=7)
    left = expected > 0
    assert 1 < left.sum() < 7
    assert not observed[~left].any()
    assert ((observed - 3000 * expected)[left] ** 2 / (3000 * expected[left])).sum() < 24.1
    for completion in completions:
        assert completion.logprobs[0] == pytest.approx(np.log(expected[completion.ids[0]]), abs=1e-5)


def slowly(logits: list[float], temperature: float, top_p: float, top_k: int) -> list[float]:
    """The distribution that `Decoding` describes, said with lists."""
    weights = [math.exp((logit - max(logits)) / temperature) for logit in logits]
    ranked = sorted(range(len(logits)), key=lambda i: (-weights[i], i))[: top_k or None]
    total = sum(weights[i] for i in ranked)
    kept: list[int] = []
    for i in ranked:
        if sum(weights[j] for j in kept) / total < top_p:
            kept.append(i)
    rest = sum(weights[i] for i in kept)
    return [weights[i] / rest if i in kept else 0.0 for i in range(len(logits))]


@given(st.data())
def test_the_cut_is_the_slow_one_in_each_row(data: st.DataObject) -> None:
    """Rows of all settings together; logits on a coarse grid, so that many are equal."""
    size = data.draw(st.integers(1, 8))
    numbers = st.integers(-6, 6).map(lambda n: n / 2)
    decodings = st.tuples(st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from([0.05, 0.33, 0.61, 0.97, 1.0]), st.integers(0, 9))
    rows = data.draw(st.lists(st.tuples(st.lists(numbers, min_size=size, max_size=size), decodings), min_size=1, max_size=5))
    temperatures, top_p, top_k = (np.array(column) for column in zip(*(decoding for _, decoding in rows), strict=True))
    logits = torch.tensor([row for row, _ in rows], dtype=torch.float32)
    found = cut(logits, temperatures.astype(np.float32), top_p, top_k)
    for row, (given_logits, decoding) in enumerate(rows):
        expected = slowly(given_logits, *decoding)
        assert [p > 0 for p in expected] == torch.isfinite(found[row]).tolist()
        torch.testing.assert_close((found[row] / decoding[0]).softmax(-1), torch.tensor(expected), atol=1e-5, rtol=0)


def test_greedy_rows_and_whole_distributions_stay_as_they_are() -> None:
    logits = torch.randn(2, 9)
    assert cut(logits, np.array([0.0, 1.0], np.float32), np.array([0.1, 1.0]), np.array([2, 0])) is logits


@pytest.mark.parametrize("decoding", [Decoding(0.0), Decoding(1.0), Decoding(1.0, 0.8, 5)])
def test_who_shares_a_batch_doesnt_matter(decoding: Decoding) -> None:
    requests = [Sampling(decoding, 5 + seed % 9, (0,), seed) for seed in range(12)]
    together = run(build(), requests)
    queued = run(build(slots=2), requests)
    for index, sampling in enumerate(requests):
        alone = run(build(), [sampling])[0]
        for other in (together[index], queued[index]):
            np.testing.assert_array_equal(other.ids, alone.ids)
            np.testing.assert_allclose(other.logprobs, alone.logprobs, atol=1e-5, rtol=0)
            np.testing.assert_array_equal(other.routing, alone.routing)
    assert len({tuple(c.ids) for c in together}) > 1 or decoding.temperature == 0


def test_bfloat16_sampler_differs_from_a_float32_trainer_by_its_rounding() -> None:
    requests = [Sampling(Decoding(1.0), 20, (), seed) for seed in range(8)]
    gaps = {}
    for dtype in ("float32", "bfloat16"):
        differences = []
        for completion in run(build(dtype=dtype), requests):
            stream = torch.from_numpy(np.concatenate([PROMPT, completion.ids]).astype(np.int64))
            with torch.no_grad():
                logprobs = POLICY.logits(POLICY(stream[None]).hidden[0]).log_softmax(-1)
            recomputed = logprobs[4:-1].gather(1, stream[5:, None])[:, 0].numpy()
            differences.append(np.abs(completion.logprobs - recomputed))
        gaps[dtype] = np.concatenate(differences).mean()
    assert gaps["float32"] < 1e-6
    assert 1e-4 < gaps["bfloat16"] < 0.05

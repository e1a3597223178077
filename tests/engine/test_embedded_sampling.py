"""What is sampled is the softmax, from streams of the requests' own."""

import asyncio

import numpy as np
import pytest
import torch

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, EngineWorker, Sampling
from t1x.engine.sampler import sample, uniforms
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
    completions = run(build(), [Sampling(temperature, 1, (), seed) for seed in range(3000)])
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


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_who_shares_a_batch_doesnt_matter(temperature: float) -> None:
    requests = [Sampling(temperature, 5 + seed % 9, (0,), seed) for seed in range(12)]
    together = run(build(), requests)
    queued = run(build(slots=2), requests)
    for index, sampling in enumerate(requests):
        alone = run(build(), [sampling])[0]
        for other in (together[index], queued[index]):
            np.testing.assert_array_equal(other.ids, alone.ids)
            np.testing.assert_allclose(other.logprobs, alone.logprobs, atol=1e-5, rtol=0)
            np.testing.assert_array_equal(other.routing, alone.routing)
    assert len({tuple(c.ids) for c in together}) > 1 or temperature == 0


def test_bfloat16_sampler_differs_from_a_float32_trainer_by_its_rounding() -> None:
    requests = [Sampling(1.0, 20, (), seed) for seed in range(8)]
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

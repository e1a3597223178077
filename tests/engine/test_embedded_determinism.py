"""A deterministic engine: a session's completions depend on its own requests and the weights alone, to the bit."""

import asyncio

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineWorker, Sampling
from t1x.engine.tiled_decoder import TILE, reach
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe

torch.set_num_threads(1)


def spec(**sizes: int) -> Qwen3Moe:
    usual = {
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 150,
        "embedding_init_std": 1.0,
        "router_init_std": 0.5,
    }
    return Qwen3Moe(**usual | sizes)


SPECS = {
    "small": spec(vocab_size=30, hidden_size=16, head_dim=8, moe_intermediate_size=8),
    "odd": spec(
        vocab_size=97,
        hidden_size=33,
        head_dim=10,
        moe_intermediate_size=7,
        num_attention_heads=3,
        num_experts=5,
        num_key_value_heads=3,
    ),
    "quickstart": spec(
        vocab_size=701,
        hidden_size=128,
        head_dim=32,
        moe_intermediate_size=64,
        num_attention_heads=4,
        num_key_value_heads=4,
        num_experts=8,
    ),
}
WEIGHTS = {name: [to_hf(each.build(seed=seed)) for seed in (0, 1)] for name, each in SPECS.items()}
DECODINGS = [Decoding(1.0), Decoding(0.7, top_p=0.9, top_k=9), Decoding(0.0)]


async def trial(engine: EngineWorker, model: Qwen3Moe, seed: int, session: str) -> list[Completion]:
    """Turns whose sizes, texts and decodings follow from the seed."""
    random = np.random.default_rng(seed)

    def text(most: int) -> np.ndarray:
        return random.integers(0, model.vocab_size, int(random.integers(1, most))).astype(np.int32)

    history, completions = text(40), []
    for turn in range(int(random.integers(1, 4))):
        decoding = DECODINGS[int(random.integers(len(DECODINGS)))]
        stops = (int(random.integers(model.vocab_size)),)
        completions.append(
            await engine.generate(history, Sampling(decoding, int(random.integers(1, 12)), stops, seed * 31 + turn), session)
        )
        for _ in range(int(random.integers(0, 4))):
            await asyncio.sleep(0)
        history = np.concatenate([history, completions[-1].ids, text(12)])
    await engine.release(session)
    return completions


def run(
    name: str, seeds: list[int], concurrency: int, dtype: str = "float32", published: bool = False
) -> dict[int, list[Completion]]:
    """All trials, so many at a time, on an engine whose slots were used before."""

    async def main() -> dict[int, list[Completion]]:
        first, second = WEIGHTS[name]
        engine = EmbeddedEngine(max_sessions=concurrency, dtype=dtype).build(
            SPECS[name], second if published else first, deterministic=True
        )
        slots = asyncio.Semaphore(concurrency)
        if published:
            await asyncio.gather(*(trial(engine, SPECS[name], 999 + i, f"before {i}") for i in range(concurrency)))
            await engine.publish(1, first)

        async def one(seed: int) -> list[Completion]:
            async with slots:
                return await trial(engine, SPECS[name], seed, str(seed))

        try:
            return dict(zip(seeds, await asyncio.gather(*map(one, seeds)), strict=True))
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(main(), 60))


def assert_same(ours: list[Completion], alone: list[Completion]) -> None:
    assert len(ours) == len(alone)
    for mine, its in zip(ours, alone, strict=True):
        assert mine.ids.tolist() == its.ids.tolist()
        assert mine.logprobs.tobytes() == its.logprobs.tobytes()
        assert (mine.routing_start, mine.finish_reason) == (its.routing_start, its.finish_reason)
        np.testing.assert_array_equal(mine.routing, its.routing)


@given(st.sampled_from(sorted(SPECS)), st.lists(st.integers(0, 10_000), min_size=2, max_size=9, unique=True), st.data())
@settings(deadline=None, max_examples=25)
def test_a_session_samples_the_same_bits_alone_and_beside_others(name: str, seeds: list[int], data: st.DataObject) -> None:
    others = run(name, seeds, data.draw(st.integers(1, 10)), published=data.draw(st.booleans()))
    for seed in seeds[:2]:
        assert_same(others[seed], run(name, [seed], 1)[seed])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(SPECS))
def test_more_sessions_than_a_tile_holds_sample_the_same_bits(name: str, dtype: str) -> None:
    seeds = list(range(2 * TILE + 3))
    many, few = run(name, seeds, len(seeds), dtype), run(name, seeds[::-1], 5, dtype, published=True)
    for seed in seeds:
        assert_same(many[seed], few[seed])
    for seed in seeds[:: TILE // 2]:
        assert_same(many[seed], run(name, [seed], 1, dtype)[seed])


def test_what_is_read_of_a_cache_depends_on_the_rows_own_length() -> None:
    assert [reach(end, 640) for end in (1, 64, 65, 128, 129, 256, 257, 512, 513, 640)] == [
        64,
        64,
        128,
        128,
        256,
        256,
        512,
        512,
        640,
        640,
    ]


def test_a_session_beyond_those_that_are_kept_is_refused_and_nobody_loses_its_cache() -> None:
    async def main() -> None:
        engine = EmbeddedEngine(max_sessions=2).build(SPECS["small"], WEIGHTS["small"][0], deterministic=True)
        prompt, sampling = np.array([1, 2, 3], np.int32), Sampling(Decoding(0.0), 2, (), 0)
        for session in "ab":
            await engine.generate(prompt, sampling, session)
        with pytest.raises(ValueError, match=r"session c: 2 sessions are alive.*raise max_sessions"):
            await engine.generate(prompt, sampling, "c")
        assert (await engine.generate(prompt, sampling, "a")).routing_start == 2
        await engine.release("a")
        assert (await engine.generate(prompt, sampling, "c")).routing_start == 0
        await engine.close()

    asyncio.run(main())

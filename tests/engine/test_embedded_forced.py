"""Forced ids: the engine tells of given ids what it would have told had it sampled them."""

import asyncio
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineWorker, Sampling
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe

torch.set_num_threads(1)

SPEC = Qwen3Moe(
    vocab_size=23,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=8,
    max_position_embeddings=96,
    embedding_init_std=1.0,
    router_init_std=0.5,
)
POLICY = SPEC.build(seed=2)
STOP = 4
Dtype = Literal["float32", "bfloat16"]
Asked = tuple[np.ndarray, Sampling]


def build(slots: int, dtype: Dtype = "float32", deterministic: bool = True) -> EngineWorker:
    return EmbeddedEngine(max_sessions=slots, dtype=dtype).build(SPEC, to_hf(POLICY), version=3, deterministic=deterministic)


async def conversation(engine: EngineWorker, seed: int) -> list[tuple[Asked, Completion]]:
    """Turns that follow from the seed; some rewrite the history, so that part of the cache is of no use."""
    random = np.random.default_rng(seed)
    history, turns = random.integers(0, 23, int(random.integers(1, 20))).astype(np.int32), []
    for turn in range(int(random.integers(1, 4))):
        if random.random() < 0.2:
            history = history[: int(random.integers(1, len(history) + 1))]
        decoding = (Decoding(1.0), Decoding(0.7), Decoding(0.0), Decoding(0.9, top_k=9))[int(random.integers(4))]
        sampling = Sampling(decoding, int(random.integers(1, 8)), (STOP,), seed * 31 + turn)
        completion = await engine.generate(history, sampling, str(seed))
        turns.append(((history, sampling), completion))
        history = np.concatenate([history, completion.ids, random.integers(0, 23, int(random.integers(0, 4))).astype(np.int32)])
    return turns


async def again(engine: EngineWorker, turns: list[tuple[Asked, Completion]], session: str) -> list[Completion]:
    return [
        await engine.generate(prompt, replace(sampling, forced_ids=completion.ids, seed=0), session)
        for (prompt, sampling), completion in turns
    ]


def sampled_and_forced(
    seeds: list[int], slots: tuple[int, int], dtype: Dtype = "float32", deterministic: bool = True
) -> tuple[list[Completion], list[Completion]]:
    async def main() -> tuple[list[Completion], list[Completion]]:
        first, second = (build(each, dtype, deterministic) for each in slots)
        turns = await asyncio.gather(*(conversation(first, seed) for seed in seeds))
        forced = await asyncio.gather(*(again(second, each, str(seed)) for seed, each in zip(seeds, turns, strict=True)))
        await asyncio.gather(first.close(), second.close())
        return [completion for each in turns for _, completion in each], [completion for each in forced for completion in each]

    return asyncio.run(asyncio.wait_for(main(), 60))


def assert_same_bits(sampled: list[Completion], forced: list[Completion]) -> None:
    assert len(sampled) == len(forced)
    for mine, its in zip(sampled, forced, strict=True):
        assert mine.ids.tolist() == its.ids.tolist()
        assert mine.logprobs.tobytes() == its.logprobs.tobytes()
        assert (mine.routing.dtype, mine.routing.tobytes()) == (its.routing.dtype, its.routing.tobytes())
        for name in ("routing_start", "cached_tokens", "finish_reason", "version"):
            assert getattr(mine, name) == getattr(its, name), name


@pytest.mark.ci
@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=2, unique=True), st.sampled_from(("float32", "bfloat16")))
@promise
def test_forcing_what_was_sampled_gives_back_the_same_bits(seeds: list[int], dtype: Dtype) -> None:
    """Also beside other sessions and in another order of slots, since the engine is deterministic."""
    assert_same_bits(*sampled_and_forced(seeds, (8, 5), dtype))


def test_without_a_deterministic_engine_the_same_requests_give_the_same_bits() -> None:
    """Three sessions share two slots, so caches are lost on the way."""
    assert_same_bits(*sampled_and_forced([1, 2, 3], (2, 2), deterministic=False))


def test_ids_that_were_never_sampled_get_their_own_log_probabilities_and_experts() -> None:
    """Against one full pass of the model over all of it."""
    random = np.random.default_rng(0)
    prompt, ids = (random.integers(0, 23, n).astype(np.int32) for n in (7, 30))
    stop_within = np.concatenate([ids[:5], [STOP], ids[5:]]).astype(np.int32)

    async def main() -> Completion:
        engine = build(2)
        sampling = Sampling(Decoding(0.8), 40, (STOP,), 0, forced_ids=stop_within)
        beside = asyncio.create_task(engine.generate(prompt, Sampling(Decoding(1.0), 20, (), 1), "beside"))
        completion = await engine.generate(prompt, sampling, "a")
        await beside
        await engine.close()
        return completion

    completion = asyncio.run(main())
    assert completion.ids.tolist() == stop_within.tolist()
    assert (completion.routing_start, completion.cached_tokens) == (0, 0)
    whole = torch.from_numpy(np.concatenate([prompt, stop_within]).astype(np.int64))
    with torch.no_grad():
        output = POLICY(whole[None, :-1])
        expected = (POLICY.logits(output.hidden[0]) / 0.8).log_softmax(-1)
    at = torch.arange(len(prompt) - 1, len(whole) - 1)
    np.testing.assert_allclose(completion.logprobs, expected[at, whole[1:][at]].numpy(), atol=1e-5)
    np.testing.assert_array_equal(completion.routing, output.routed_experts[0].numpy())


@pytest.mark.parametrize(("last", "reason"), [(STOP, "stop"), (STOP + 1, "length")])
def test_the_last_forced_id_ends_it_and_says_how(last: int, reason: str) -> None:
    async def main() -> tuple[Completion, Completion]:
        engine = build(1)
        prompt = np.array([1, 2, 3], np.int32)
        forced = await engine.generate(
            prompt, Sampling(Decoding(1.0), 9, (STOP,), 0, forced_ids=np.array([5, last], np.int32)), "a"
        )
        free = await engine.generate(np.append(prompt, forced.ids), Sampling(Decoding(1.0), 9, (), 0), "a")
        await engine.close()
        return forced, free

    forced, free = asyncio.run(main())
    assert (forced.ids.tolist(), forced.finish_reason) == ([5, last], reason)
    assert (len(free.ids), free.cached_tokens, free.routing_start) == (9, 4, 4), "what is forced isn't forced again"


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ([], "0 forced ids, but the completion has room for 1 to 5"),
        ([1] * 6, "6 forced ids, but the completion has room for 1 to 5"),
        ([1, 23], "forced id 23 at 1 is outside the vocabulary of 23"),
        ([-1], "forced id -1 at 0"),
    ],
)
def test_ids_that_cannot_be_a_completion_are_refused(ids: list[int], what: str) -> None:
    async def main() -> None:
        engine = build(1)
        with pytest.raises(ValueError, match=f"session a: {what}"):
            await engine.generate(
                np.array([1, 2], np.int32), Sampling(Decoding(1.0), 5, (), 0, forced_ids=np.array(ids, np.int32)), "a"
            )
        long = np.ones(94, np.int32)
        with pytest.raises(ValueError, match="3 forced ids, but the completion has room for 1 to 2"):
            await engine.generate(long, Sampling(Decoding(1.0), 5, (), 0, forced_ids=np.ones(3, np.int32)), "a")
        assert len((await engine.generate(long, Sampling(Decoding(1.0), 5, (), 0), "a")).ids) == 2
        await engine.close()

    asyncio.run(main())

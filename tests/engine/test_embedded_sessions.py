"""The life of requests and sessions: caches, barriers, ends and failures."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
import torch

from t1x.engine.continuous import ContinuousBatching
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineError, Sampling
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe

torch.set_num_threads(1)

SPEC = Qwen3Moe(
    vocab_size=30,
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
    router_init_std=0.5,
)
POLICY, NEXT_POLICY = SPEC.build(seed=2), SPEC.build(seed=3)


def prompt(*ids: int) -> np.ndarray:
    return np.array(ids, dtype=np.int32)


def greedy(tokens: int, *stop_ids: int) -> Sampling:
    return Sampling(Decoding(0.0), tokens, stop_ids, 0)


def with_engine(use: Callable[[ContinuousBatching], Awaitable[None]], slots: int = 2) -> None:
    async def main() -> None:
        worker = EmbeddedEngine(max_sessions=slots, context_length=32).build(SPEC, to_hf(POLICY), version=5)
        assert isinstance(worker, ContinuousBatching)
        await use(worker)
        await worker.close()

    asyncio.run(asyncio.wait_for(main(), 30))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


def greedy_reference(ids: np.ndarray, tokens: int, policy: torch.nn.Module = POLICY) -> list[int]:
    stream = ids.tolist()
    with torch.no_grad():
        for _ in range(tokens):
            stream.append(int(policy.logits(policy(torch.tensor([stream])).hidden[0, -1]).argmax()))
    return stream[len(ids) :]


def test_ends_by_stop_id_by_max_tokens_and_by_context() -> None:
    async def use(worker: ContinuousBatching) -> None:
        free = greedy_reference(prompt(1, 2, 3), 29)
        by_length = await worker.generate(prompt(1, 2, 3), greedy(4), "a")
        assert (by_length.ids.tolist(), by_length.finish_reason, by_length.version) == (free[:4], "length", 5)
        by_context = await worker.generate(prompt(1, 2, 3), greedy(1000), "b")
        assert (by_context.ids.tolist(), by_context.finish_reason) == (free, "length")
        stop = free[6]
        by_stop = await worker.generate(prompt(1, 2, 3), greedy(1000, 29, 28, stop), "c")
        assert by_stop.finish_reason == "stop"
        assert by_stop.ids.tolist() == free[: free.index(stop) + 1]

    with_engine(use)


def test_a_rewritten_history_is_computed_from_where_it_differs() -> None:
    async def use(worker: ContinuousBatching) -> None:
        first = await worker.generate(prompt(*range(10)), greedy(3), "a")
        assert first.routing_start == 0
        assert len(first.routing) == 12
        same = await worker.generate(prompt(*range(10)), greedy(3), "a")
        assert same.routing_start == 9
        np.testing.assert_array_equal(same.routing, first.routing[9:])
        rewritten = prompt(0, 1, 2, 3, 9, 5, 6)
        changed = await worker.generate(rewritten, greedy(3), "a")
        assert changed.routing_start == 4
        assert changed.ids.tolist() == greedy_reference(rewritten, 3)
        assert len(changed.routing) == 7 + 3 - 1 - 4

    with_engine(use)


def test_more_sessions_than_slots_evict_the_longest_idle() -> None:
    async def use(worker: ContinuousBatching) -> None:
        for session in "ab":
            await worker.generate(prompt(1, 2, 3), greedy(2), session)
        await worker.generate(prompt(1, 2, 3), greedy(2), "a")
        await worker.generate(prompt(1, 2, 3), greedy(2), "c")
        kept = await worker.generate(prompt(1, 2, 3), greedy(2), "a")
        evicted = await worker.generate(prompt(1, 2, 3), greedy(2), "b")
        assert (kept.routing_start, evicted.routing_start) == (2, 0)
        assert evicted.ids.tolist() == greedy_reference(prompt(1, 2, 3), 2)

    with_engine(use)


def test_requests_wait_where_all_slots_are_sampling() -> None:
    async def use(worker: ContinuousBatching) -> None:
        completions = await asyncio.gather(*(worker.generate(prompt(i, 2, 3), greedy(3 + i), str(i)) for i in range(7)))
        for i, completion in enumerate(completions):
            assert completion.ids.tolist() == greedy_reference(prompt(i, 2, 3), 3 + i)

    with_engine(use)


def test_a_completion_is_of_one_version_publish_waits() -> None:
    """Invariant: weights change only while nothing is being sampled."""

    async def use(worker: ContinuousBatching) -> None:
        early = asyncio.create_task(worker.generate(prompt(1, 2), greedy(20), "a"))
        await until(lambda: bool(worker._active))
        publish = asyncio.create_task(worker.publish(6, to_hf(NEXT_POLICY)))
        await asyncio.sleep(0)
        late = asyncio.create_task(worker.generate(prompt(1, 2), greedy(20), "b"))
        await publish
        assert early.done()
        assert (early.result().version, early.result().ids.tolist()) == (5, greedy_reference(prompt(1, 2), 20))
        assert ((await late).version, (await late).ids.tolist()) == (6, greedy_reference(prompt(1, 2), 20, NEXT_POLICY))
        again = await worker.generate(prompt(1, 2), greedy(20), "a")
        assert (again.routing_start, again.ids.tolist()) == (0, greedy_reference(prompt(1, 2), 20, NEXT_POLICY)), (
            "caches were dropped"
        )
        with pytest.raises(ValueError, match="don't fit"):
            await worker.publish(7, {})
        assert (worker.version, (await worker.generate(prompt(1), greedy(1), "c")).version) == (6, 6)

    with_engine(use)


def test_pause_returns_when_quiet_and_holds_new_requests() -> None:
    async def use(worker: ContinuousBatching) -> None:
        running = asyncio.create_task(worker.generate(prompt(1, 2), greedy(20), "a"))
        await until(lambda: bool(worker._active))
        await worker.pause()
        assert running.done() or not worker._active
        held = asyncio.create_task(worker.generate(prompt(1, 2), greedy(2), "b"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not held.done()
        await worker.resume()
        assert len((await held).ids) == 2
        assert len((await running).ids) == 20

    with_engine(use)


def test_release_aborts_and_forgets() -> None:
    async def use(worker: ContinuousBatching) -> None:
        running = asyncio.create_task(worker.generate(prompt(1, 2), greedy(25), "a"))
        await until(lambda: bool(worker._active) and worker._length[worker._slot_of["a"]] > 6)
        await worker.release("a")
        partial: Completion = await running
        n = len(partial.ids)
        assert partial.finish_reason == "abort"
        assert 4 < n < 25
        assert partial.ids.tolist() == greedy_reference(prompt(1, 2), n)
        assert (len(partial.logprobs), len(partial.routing), partial.routing_start) == (n, 2 + n - 1, 0)
        assert (await worker.generate(prompt(1, 2), greedy(2), "a")).routing_start == 0
        await worker.pause()
        waiting = asyncio.create_task(worker.generate(prompt(1, 2), greedy(5), "b"))
        await asyncio.sleep(0)
        await worker.release("b")
        empty = await waiting
        assert (empty.finish_reason, len(empty.ids), len(empty.routing)) == ("abort", 0, 2 + 0 - 1 - empty.routing_start)
        await worker.release("unknown")

    with_engine(use)


def test_what_a_cancelled_request_computed_is_forgotten() -> None:
    """Invariant: cached positions are those whose rows were returned."""

    async def use(worker: ContinuousBatching) -> None:
        first = await worker.generate(prompt(1, 2, 3), greedy(2), "a")
        longer = np.concatenate([prompt(1, 2, 3), first.ids, prompt(7, 8)])
        cancelled = asyncio.create_task(worker.generate(longer, greedy(20), "a"))
        await until(lambda: bool(worker._active) and worker._length[worker._slot_of["a"]] > 10)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert not worker._active
        completion = await worker.generate(longer, greedy(3), "a")
        assert (completion.routing_start, len(completion.routing)) == (4, 7 + 3 - 1 - 4)
        assert completion.ids.tolist() == greedy_reference(longer, 3)
        blockers = [asyncio.create_task(worker.generate(prompt(1), greedy(28), s)) for s in "xy"]
        queued = asyncio.create_task(worker.generate(prompt(1), greedy(28), "z"))
        await asyncio.sleep(0)
        queued.cancel()
        await asyncio.gather(*blockers)
        assert not worker._waiting

    with_engine(use)


@pytest.mark.parametrize(
    ("ids", "sampling", "what"),
    [
        ([], greedy(1), "prompt is empty"),
        ([1, 30], greedy(1), "prompt id 30 at 1 is outside the vocabulary of 30"),
        ([-1], greedy(1), "prompt id -1 at 0"),
        ([1] * 32, greedy(1), "32 tokens leaves no room in a context of 32"),
        ([1], greedy(0), "max_tokens must be at least 1"),
        ([1], Sampling(Decoding(-1.0), 1, (), 0), "temperature at least 0"),
        ([1], Sampling(Decoding(1.0, top_p=0.0), 1, (), 0), "top_p above 0"),
        ([1], Sampling(Decoding(1.0, top_k=-1), 1, (), 0), "top_k at least 0"),
    ],
)
def test_bad_requests_are_refused_and_others_go_on(ids: list[int], sampling: Sampling, what: str) -> None:
    async def use(worker: ContinuousBatching) -> None:
        good = asyncio.create_task(worker.generate(prompt(1, 2), greedy(10), "good"))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match=f"session bad: .*{what}"):
            await worker.generate(np.array(ids, dtype=np.int32), sampling, "bad")
        with pytest.raises(ValueError, match="session good is sampling already"):
            await worker.generate(prompt(1), greedy(1), "good")
        assert len((await good).ids) == 10

    with_engine(use)


def test_a_failure_reaches_every_request_that_waits() -> None:
    async def use(worker: ContinuousBatching) -> None:
        requests = [asyncio.create_task(worker.generate(prompt(1, 2), greedy(20), str(i))) for i in range(4)]
        await until(lambda: bool(worker._active))
        worker._decoder.keys = worker._decoder.keys[:1]
        for result in await asyncio.gather(*requests, return_exceptions=True):
            assert isinstance(result, EngineError)
            assert "the engine failed" in str(result)
        with pytest.raises(EngineError, match="the engine failed"):
            await worker.generate(prompt(1), greedy(1), "later")
        await worker.pause()

    with_engine(use)


def test_close_fails_what_waits() -> None:
    async def use(worker: ContinuousBatching) -> None:
        requests = [asyncio.create_task(worker.generate(prompt(1, 2), greedy(20), str(i))) for i in range(3)]
        await until(lambda: bool(worker._active))
        await worker.close()
        results = await asyncio.gather(*requests, return_exceptions=True)
        assert all(isinstance(result, EngineError) and "closed" in str(result) for result in results)

    with_engine(use)


def test_a_context_beyond_the_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"context_length \(65\) exceeds the model's max_position_embeddings \(64\)"):
        EmbeddedEngine(context_length=65).build(SPEC, to_hf(POLICY))

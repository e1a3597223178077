"""What the engine returns is what a full pass of the same weights gives."""

import asyncio

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineWorker, Sampling
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.transformer import MoeTransformer

torch.set_num_threads(1)

VOCABULARY = 40
SPEC = Qwen3Moe(
    vocab_size=VOCABULARY,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    max_position_embeddings=160,
    router_init_std=0.3,
    embedding_init_std=1.0,
)
POLICY = SPEC.build(seed=1)


def engine(slots: int = 4, dtype: str = "float32") -> EngineWorker:
    return EmbeddedEngine(max_sessions=slots, context_length=160, dtype=dtype).build(SPEC, to_hf(POLICY))


def check_against_full_pass(policy: MoeTransformer, prompt: np.ndarray, completion: Completion, temperature: float = 1.0) -> None:
    stream = torch.from_numpy(np.concatenate([prompt, completion.ids]).astype(np.int64))
    with torch.no_grad():
        output = policy(stream[None])
        logprobs = (policy.logits(output.hidden[0]) / temperature).log_softmax(-1)
    n = len(completion.ids)
    expected = logprobs[len(prompt) - 1 : -1].gather(1, stream[len(prompt) :, None])[:, 0]
    np.testing.assert_allclose(completion.logprobs, expected.numpy(), atol=1e-5, rtol=0)
    assert len(completion.routing) == len(prompt) + n - 1 - completion.routing_start
    np.testing.assert_array_equal(completion.routing, output.routed_experts[0, completion.routing_start : -1].numpy())


async def play(
    worker: EngineWorker, session: str, first: list[int], turns: list[tuple[list[int], int, float]]
) -> list[tuple[np.ndarray, Completion, float]]:
    prompt = np.array(first, dtype=np.int32)
    played = []
    for index, (glue, tokens, temperature) in enumerate(turns):
        completion = await worker.generate(
            prompt, Sampling(Decoding(temperature), tokens, (0, 1), seed=1000 * len(first) + index), session
        )
        played.append((prompt, completion, temperature or 1.0))
        prompt = np.concatenate([prompt, completion.ids, np.array(glue, dtype=np.int32)])
    return played


token = st.integers(0, VOCABULARY - 1)
turn = st.tuples(st.lists(token, max_size=9), st.integers(1, 7), st.sampled_from([0.0, 0.7, 1.0]))
trial = st.tuples(st.lists(token, min_size=1, max_size=40), st.lists(turn, min_size=1, max_size=5))


@settings(max_examples=25, deadline=None)
@given(trials=st.lists(trial, min_size=1, max_size=6), slots=st.integers(1, 7))
def test_turns_over_a_cache_equal_one_full_pass(trials: list, slots: int) -> None:
    """Ragged sessions, more of them than slots as well (waiting, eviction)."""

    async def main() -> list:
        worker = engine(slots)
        played = await asyncio.gather(*(play(worker, str(i), *trial) for i, trial in enumerate(trials)))
        await worker.close()
        return played

    for played in asyncio.run(main()):
        for index, (prompt, completion, temperature) in enumerate(played):
            check_against_full_pass(POLICY, prompt, completion, temperature)
            if index and slots >= len(trials):
                before, previous, _ = played[index - 1]
                assert completion.routing_start == min(len(before) + len(previous.ids) - 1, len(prompt) - 1)


@pytest.mark.parametrize("sessions", [1, 5])
def test_greedy_equals_transformers_generate(sessions: int, tmp_path) -> None:
    from transformers import Qwen3MoeForCausalLM

    from t1x.model.checkpoint import save_pretrained

    save_pretrained(POLICY, tmp_path / "model")
    theirs = Qwen3MoeForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    prompts = np.random.default_rng(2).integers(0, VOCABULARY, (sessions, 12)).astype(np.int32)

    async def main() -> list[Completion]:
        worker = engine(8)
        return await asyncio.gather(
            *(worker.generate(p, Sampling(Decoding(0.0), 20, (), 0), str(i)) for i, p in enumerate(prompts))
        )

    completions = asyncio.run(main())
    reference = theirs.generate(torch.from_numpy(prompts.astype(np.int64)), max_new_tokens=20, do_sample=False, eos_token_id=None)
    np.testing.assert_array_equal(np.stack([c.ids for c in completions]), reference[:, 12:].numpy())

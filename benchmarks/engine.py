"""Claim: the embedded engine samples faster than transformers' `generate` on the same weights.

One thread, float32, CPU time, median of interleaved runs. Multi-turn: every turn's prompt is the whole history and 16 new tokens;
`generate` is called once a turn with all trials left-padded into one batch. Both sample every token (no stop id), so both give the
same number. The last column is what a deterministic engine samples, as a share of that.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3MoeForCausalLM

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding, EngineWorker, Sampling
from t1x.model.checkpoint import save_pretrained, to_hf
from t1x.model.qwen3_moe import Qwen3Moe

MODEL = Qwen3Moe(
    vocab_size=700,
    hidden_size=128,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=4,
    head_dim=32,
    num_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=64,
    tie_word_embeddings=True,
    max_position_embeddings=256,
)
PROMPT, GLUE = 24, 16
CASES = [("8 trials of 8 turns", 8, 8, 8), ("64 trials of 8 turns", 64, 8, 8), ("one turn of 8x128", 8, 1, 128)]
AIMS = [3.0, 2.0, 1.5]
RUNS = 5


def prompts(trials: int) -> list[np.ndarray]:
    """Ragged first prompts around `PROMPT` tokens."""
    random = np.random.default_rng(0)
    return [random.integers(0, MODEL.vocab_size, PROMPT + int(random.integers(-8, 9))).astype(np.int32) for _ in range(trials)]


def glue(trial: int, turn: int) -> np.ndarray:
    """What the environment answers: ragged, the same for both."""
    random = np.random.default_rng([trial, turn])
    return random.integers(0, MODEL.vocab_size, GLUE + int(random.integers(-8, 9))).astype(np.int32)


def ours(worker: EngineWorker, trials: int, turns: int, tokens: int) -> int:
    """Tokens sampled by concurrent trials."""

    async def trial(index: int, ids: np.ndarray) -> int:
        sampled = 0
        for turn in range(turns):
            completion = await worker.generate(ids, Sampling(Decoding(1.0), tokens, (), seed=1000 * index + turn), str(index))
            sampled += len(completion.ids)
            ids = np.concatenate([ids, completion.ids, glue(index, turn)])
        await worker.release(str(index))
        return sampled

    async def all_trials() -> int:
        return sum(await asyncio.gather(*(trial(index, ids) for index, ids in enumerate(prompts(trials)))))

    return asyncio.run(all_trials())


def theirs(model: Qwen3MoeForCausalLM, trials: int, turns: int, tokens: int) -> int:
    """Tokens sampled by `generate`, once a turn over the left-padded batch of all histories."""
    histories = prompts(trials)
    for turn in range(turns):
        longest = max(len(ids) for ids in histories)
        batch = torch.zeros(trials, longest, dtype=torch.long)
        mask = torch.zeros(trials, longest, dtype=torch.long)
        for row, ids in enumerate(histories):
            batch[row, longest - len(ids) :], mask[row, longest - len(ids) :] = torch.from_numpy(ids.astype(np.int64)), 1
        output = model.generate(
            batch, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=tokens, eos_token_id=None, pad_token_id=0
        )
        new = output[:, longest:].numpy().astype(np.int32)
        assert new.shape == (trials, tokens)
        histories = [
            np.concatenate([ids, row, glue(trial, turn)]) for trial, (ids, row) in enumerate(zip(histories, new, strict=True))
        ]
    return trials * turns * tokens


def rate(sample: Callable[[], int]) -> float:
    """Tokens sampled a second of CPU time."""
    start = time.process_time()
    return sample() / (time.process_time() - start)


def main() -> None:
    torch.set_num_threads(1)
    policy = MODEL.build(seed=0)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(policy, Path(folder) / "model")
        peer = Qwen3MoeForCausalLM.from_pretrained(Path(folder) / "model", dtype=torch.float32).eval()
    spec = EmbeddedEngine(max_sessions=64, context_length=256)
    worker, tiled = spec.build(MODEL, to_hf(policy)), spec.build(MODEL, to_hf(policy), deterministic=True)
    print(f"{sum(p.numel() for p in policy.parameters()) / 1e6:.2f}M parameters, {RUNS} interleaved runs, CPU time, one thread")
    print(f"{'':24}{'t1x tok/s':>12}{'generate tok/s':>16}{'ratio':>8}{'aim':>6}{'deterministic':>15}")
    for (name, *sizes), aim in zip(CASES, AIMS, strict=True):
        ours(worker, *sizes)
        ours(tiled, *sizes)
        samplers = (lambda s=sizes: ours(worker, *s), lambda s=sizes: theirs(peer, *s), lambda s=sizes: ours(tiled, *s))
        rounds = [[rate(sample) for sample in samplers] for _ in range(RUNS)]
        mine, other, same = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:24}{mine:12.0f}{other:16.0f}{mine / other:8.2f}{aim:6.1f}{same / mine:15.2f}", flush=True)


if __name__ == "__main__":
    main()

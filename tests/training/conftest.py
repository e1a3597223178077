"""Random ragged trajectories and a model small enough to be compared with slow references."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.training.batch import Batch
from t1x.trajectory.records import Boundary, Trajectory, VersionSpan

torch.set_num_threads(1)

VOCABULARY, LAYERS, EXPERTS, K = 61, 2, 6, 2


@pytest.fixture
def config() -> Qwen3Moe:
    return Qwen3Moe(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_experts=EXPERTS,
        num_experts_per_tok=K,
        moe_intermediate_size=12,
        tie_word_embeddings=True,
        router_init_std=1.0,
    )


@pytest.fixture
def make_trajectory() -> Callable[..., Trajectory]:
    """Makes a trajectory of several turns: prompt, then (response, observation) pairs; the last response may be followed by
    more."""

    def make(
        random: np.random.Generator, turns: int = 3, longest: int = 6, trailing: int = 0, temperature: float = 1.0
    ) -> Trajectory:
        mask = [False] * int(random.integers(1, longest + 1))
        for turn in range(turns):
            mask += [True] * int(random.integers(1, longest + 1))
            mask += [False] * (trailing if turn == turns - 1 else int(random.integers(0, longest + 1)))
        n = len(mask)
        return Trajectory(
            token_ids=random.integers(0, VOCABULARY, n).astype(np.int32),
            loss_mask=np.array(mask),
            logprobs=np.where(mask, -random.exponential(1.0, n), 0).astype(np.float32),
            routed_experts=np.argsort(random.random((n - 1, LAYERS, EXPERTS)), axis=-1)[..., :K].astype(np.uint8),
            versions=(VersionSpan(0, n, 0),),
            boundaries=(Boundary.EXACT,) * (turns - 1),
            temperature=temperature,
        )

    return make


@pytest.fixture
def make_batch(make_trajectory: Callable[..., Trajectory]) -> Callable[..., Batch]:
    """Makes a batch of ragged samples, one a trial unless `trials` says otherwise."""

    def make(random: np.random.Generator, samples: int = 9, trials: Sequence[int] | None = None, **trajectory: object) -> Batch:
        which = np.arange(samples) if trials is None else np.array(trials)
        rewards = random.normal(size=int(which.max()) + 1)
        made = [make_trajectory(random, turns=int(random.integers(1, 5)), **trajectory) for _ in which]
        return Batch(made, rewards, which, seed=int(random.integers(1000)))

    return make


@pytest.fixture(scope="session")
def make_ragged_batch() -> Callable[[int], Batch]:
    """Makes a batch of trials of one or several chunks, all from a seed; for property tests, so it is cheap."""

    def make(seed: int) -> Batch:
        random = np.random.default_rng(seed)
        chunks = random.integers(1, 4, int(random.integers(1, 6)))
        made = [_ragged_trajectory(random) for _ in range(chunks.sum())]
        return Batch(made, random.integers(0, 20, len(chunks)) / 20, np.repeat(np.arange(len(chunks)), chunks), seed=0)

    return make


def _ragged_trajectory(random: np.random.Generator) -> Trajectory:
    n = int(random.integers(2, 14))
    mask = np.arange(n) > 0
    mask[1:-1] &= random.random(n - 2) < 0.6
    trailing = int(random.integers(0, 3))
    mask = np.concatenate([mask, np.zeros(trailing, dtype=np.bool_)])
    n += trailing
    return Trajectory(
        token_ids=np.zeros(n, np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -random.exponential(1.0, n), 0).astype(np.float32),
        routed_experts=np.zeros((n - 1, 0, 0), np.uint8),
        versions=(VersionSpan(0, n, 0),),
        boundaries=(),
        temperature=1.0,
    )

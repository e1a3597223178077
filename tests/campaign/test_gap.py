"""The gap between sampler and trainer, measured on the same trajectories with real sandboxes."""

import asyncio
from typing import Literal

import numpy as np
import pytest

from t1x.campaign.assembly import first, named, trial_runner
from t1x.campaign.campaign import Campaign
from t1x.campaign.gap import Gap, measure_gap, ratio
from t1x.config import load
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding
from t1x.model.checkpoint import to_hf
from t1x.model.router import RouterMode

MODES = (RouterMode.FREE, RouterMode.REPLAY_NO_GRAD)


def measured(dtype: Literal["float32", "bfloat16"]) -> list[Gap]:
    """Of a policy without training: its router has small margins, so that low precision flips experts."""
    campaign = load("experiments/quickstart.gin", set=["ShellHarness.max_turns = 2"]).root
    assert isinstance(campaign, Campaign)
    policy = campaign.model.build(0)
    trainer = campaign.trainer.build(policy, campaign.model.build_value(0), campaign.algorithm)
    engine = EmbeddedEngine(dtype=dtype).build(campaign.model, to_hf(policy))
    host = campaign.sandbox.build()

    async def run() -> list[Gap]:
        try:
            runner = trial_runner(campaign, host, campaign.tokenizer.build(), engine, "gap", 0, Decoding(1.0))
            return await measure_gap(named("gap", 0, first(campaign.pool.build(), 24)), runner, trainer, MODES, 24)
        finally:
            await engine.close()
            await host.close()

    return asyncio.run(run())


def test_replay_narrows_the_gap_of_a_bfloat16_sampler() -> None:
    free, replayed = measured("bfloat16")
    assert free.loss_tokens == replayed.loss_tokens > 500
    assert free.own_turn_violations == 0
    assert replayed.mean < free.mean - free.stderr


def test_a_float32_sampler_has_no_gap() -> None:
    assert max(gap.mean for gap in measured("float32")) < 1e-5


def test_the_standard_error_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(0)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        counts = rng.integers(1, 20, 200)
        return np.array([rng.exponential(1 + 0.1 * n, n).sum() for n in counts]), counts

    ratios, errors = zip(*(ratio(*sample()) for _ in range(400)), strict=True)
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.15)

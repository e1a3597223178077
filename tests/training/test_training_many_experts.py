"""Records of more than 256 experts, two bytes each, from the engine to the trainer."""

import asyncio

import numpy as np
import pytest

from t1x.campaign.stored_batch import batch_from_tree, batch_tree
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding, Sampling
from t1x.model.checkpoint import to_hf
from t1x.model.router import RouterMode
from t1x.text.chat import bundled
from t1x.training.batch import Batch
from t1x.training.grpo import GRPO
from t1x.training.optimizer import Adam
from t1x.training.trainer import TorchTrainer
from t1x.trajectory.records import Trajectory, Turn
from t1x.trajectory.stitcher import TokenStitcher


@pytest.fixture
def many(config):
    return config.model_copy(update={"num_experts": 300, "num_experts_per_tok": 4})


async def sampled(policy) -> list[Turn]:
    """Two turns of one session, the second from the cache."""
    engine = EmbeddedEngine(max_sessions=2, context_length=64).build(policy.config, to_hf(policy))
    prompt, turns = np.arange(5, 17, dtype=np.int32), []
    for index in range(2):
        completion = await engine.generate(prompt, Sampling(Decoding(1.0), 12, (), seed=index), session="one")
        turns.append(Turn(index, prompt, completion, temperature=1.0))
        prompt = np.concatenate([prompt, completion.ids, np.array([9, 8], np.int32)])
    await engine.close()
    return turns


def stitched(policy) -> Trajectory:
    turns = asyncio.run(sampled(policy))
    (trajectory,) = TokenStitcher().stitch("a trial", turns, bundled(), policy.config.routing_layout)
    return trajectory


def test_more_than_256_experts_are_captured_stitched_stored_and_replayed(many) -> None:
    policy = many.build(seed=0)
    trajectory = stitched(policy)
    assert trajectory.routed_experts.dtype == np.uint16
    assert trajectory.routed_experts.max() > 255, "what one byte couldn't hold"
    batch = batch_from_tree(batch_tree(Batch([trajectory], np.ones(1), np.zeros(1, np.int64), seed=0)))
    trainer = TorchTrainer(recompute=True).build(policy, None, GRPO(optimizer=Adam(lr=1e-3)))
    replayed = trainer.log_probs(batch, RouterMode.REPLAY_NO_GRAD)
    np.testing.assert_allclose(replayed, batch.sampler_logprobs, atol=1e-5)
    found = trainer.update_actor(batch, np.ones(batch.loss_tokens), replayed, RouterMode.REPLAY_WITH_GRAD)
    assert found["mismatch/version_skew"] == 0

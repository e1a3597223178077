import math
from dataclasses import replace

import numpy as np
import pytest

from t1x.grading.report import VerifierReport
from t1x.model.router import RouterMode
from t1x.rollout.records import Trial
from t1x.tasks.demonstrations import MixedDemonstrations
from t1x.tasks.task import Task
from t1x.training.batch import Batch
from t1x.training.likelihood import SFT, RejectionSampling
from t1x.training.optimizer import Adam
from t1x.training.trainer import TorchTrainer
from t1x.trajectory.ending import EndedBy

ADAM = Adam(lr=1e-2)
DEMONSTRATIONS = MixedDemonstrations()


def trial(reward, passed=0, ended_by=EndedBy.DONE, trajectories=(), cause=None):
    report = VerifierReport(tuple((f"a{i}", i < passed) for i in range(2)), cause)
    return Trial("t", Task("t", "", (), (), ()), (), ended_by, report, reward, tuple(trajectories), ())


def test_successes_are_what_the_verifier_resolves_or_what_a_threshold_says():
    trials = [trial(0.1, 2), trial(0.05, 1), trial(0.0), trial(0.9, 2, cause="truncated"), trial(0.1, 2, EndedBy.TURN_LIMIT)]
    made = {threshold: RejectionSampling(optimizer=ADAM, threshold=threshold) for threshold in (None, 0.05)}
    assert made[None].usable(trials) == [trials[0], trials[4]]
    assert made[0.05].usable(trials) == [trials[0], trials[1], trials[3], trials[4]]
    assert made[None].metrics(trials) == {"rejection_sampling/accepted": 0.4}
    assert made[None].usable(trials[1:4]) == []


def test_broken_off_demonstrations_are_left_out():
    trials = [trial(0.0), trial(1.0, 2, EndedBy.TURN_LIMIT), trial(1.0, 2, EndedBy.CONTEXT), trial(1.0, 2)]
    sft = SFT(demonstrations=DEMONSTRATIONS, optimizer=ADAM)
    assert sft.usable(trials) == [trials[0], trials[3]]
    assert sft.demonstrator == DEMONSTRATIONS


@pytest.mark.parametrize("algorithm", [SFT(demonstrations=DEMONSTRATIONS, optimizer=ADAM), RejectionSampling(optimizer=ADAM)])
def test_the_loss_is_the_cross_entropy_and_falls(config, make_batch, algorithm):
    """From a model's own samples; without behaviour log-probabilities, and so without gaps."""
    assert algorithm.critic is None
    assert algorithm.keeps == {"policy"}
    batch = make_batch(np.random.default_rng(0))
    trainer = TorchTrainer(tokens_per_microbatch=64).build(config.build(seed=0), None, algorithm)
    expected = -trainer.log_probs(batch, RouterMode.FREE).mean()
    advantages, returns = algorithm.advantages(batch, None)
    np.testing.assert_array_equal(returns, np.repeat(batch.rewards[batch.trials], batch.counts))
    first = trainer.update_actor(batch, advantages, None, RouterMode.FREE)
    assert first["actor/loss"] == pytest.approx(expected, abs=1e-6)
    assert not [name for name in first if name.startswith("mismatch/")]
    for _ in range(5):
        last = trainer.update_actor(batch, advantages, None, RouterMode.FREE)
    assert last["actor/loss"] < 0.9 * first["actor/loss"]
    assert math.isfinite(last["actor/grad_norm"])


def test_what_was_sampled_by_several_versions_is_a_batch_all_the_same(make_batch):
    """A likelihood compares with no behaviour."""
    batch = make_batch(np.random.default_rng(1))
    shifted = [replace(each, versions=(replace(each.versions[0], version=i),)) for i, each in enumerate(batch.trajectories)]
    mixed = Batch(shifted, batch.rewards, batch.trials, batch.seed)
    assert len(set(mixed.versions)) > 1
    RejectionSampling(optimizer=ADAM).check(mixed)

"""Weights for the gap between sampler and trainer, and what becomes of batches of several policy versions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from t1x.training.batch import Batch
from t1x.training.correction import IcePop, TruncatedImportance
from t1x.training.grpo import GRPO
from t1x.training.objective import ClippedSurrogate, NegativeLogLikelihood, SequenceSurrogate
from t1x.training.optimizer import Adam
from t1x.training.ppo import PPO
from t1x.trajectory.records import VersionSpan

ADAM = Adam(lr=1e-3)
NETWORKS = {PPO: {"actor_optimizer": ADAM, "critic_optimizer": ADAM}, GRPO: {"optimizer": ADAM, "group_size": 2}}


@pytest.fixture(params=[PPO, GRPO], scope="module")
def make_algorithm(request):
    return lambda **fields: request.param(**NETWORKS[request.param], **fields)


def slow_weights(q, o, weight):
    return [weight(math.exp(float(b) - float(a))) for a, b in zip(q, o, strict=True)]


WEIGHTS = [
    ({"correction": TruncatedImportance(cap=1.3)}, lambda r: min(r, 1.3), "truncated"),
    ({"correction": IcePop(low=0.7, high=1.4)}, lambda r: r if 0.7 <= r <= 1.4 else 0.0, "masked"),
    ({"mixed_versions": "decoupled"}, lambda r: r, None),
]


@pytest.mark.parametrize(("fields", "weight", "limit"), WEIGHTS, ids=["tis", "icepop", "decoupled"])
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_advantages_are_weighted_token_by_token(make_algorithm, make_ragged_batch, fields, weight, limit, seed):
    random = np.random.default_rng(seed)
    batch = make_ragged_batch(seed)
    advantages = random.normal(size=batch.loss_tokens)
    behaviour = batch.sampler_logprobs + random.normal(scale=0.5, size=batch.loss_tokens)
    found, metrics = make_algorithm(**fields).corrected(advantages, behaviour, batch)
    weights = slow_weights(batch.sampler_logprobs, behaviour, weight)
    np.testing.assert_allclose(found, [a * w for a, w in zip(advantages, weights, strict=True)], atol=1e-12)
    expected = {"actor/correction_weight_mean": sum(weights) / len(weights)}
    if limit:
        ratios = slow_weights(batch.sampler_logprobs, behaviour, lambda r: r)
        expected[f"actor/correction_{limit}"] = np.mean([r != w for r, w in zip(ratios, weights, strict=True)])
    assert metrics == pytest.approx(expected, abs=1e-12)


def test_without_a_correction_advantages_stay_as_they_are(make_algorithm, make_batch):
    random = np.random.default_rng(0)
    batch = make_batch(random)
    advantages = random.normal(size=batch.loss_tokens)
    found, metrics = make_algorithm().corrected(advantages, random.normal(size=batch.loss_tokens), batch)
    assert found.tolist() == advantages.tolist()
    assert metrics == {}


def test_weighting_the_advantages_is_weighting_the_objective():
    """As the papers write it: weight times min(r Â, clip(r) Â)."""
    random = np.random.default_rng(1)
    c, o, advantages = (torch.tensor(random.normal(scale=0.5, size=200)) for _ in range(3))
    weights = torch.tensor(IcePop().weights(np.exp(random.normal(size=200))))
    samples = torch.zeros(200, dtype=torch.int64)
    objective = ClippedSurrogate()
    inside = objective.losses(c, o, advantages * weights, samples).losses
    np.testing.assert_allclose(inside, weights * objective.losses(c, o, advantages, samples).losses, atol=1e-12)
    assert 0 < (weights == 0).double().mean() < 1


def test_defaults_are_the_papers():
    assert (TruncatedImportance().cap, IcePop().low, IcePop().high) == (2.0, 0.5, 5.0)


def test_icepops_interval_holds_the_ratio_without_a_gap():
    for low, high in ((1.1, 5.0), (0.1, 0.9)):
        with pytest.raises(ValidationError, match="must hold 1"):
            IcePop(low=low, high=high)


def of_versions(batch, versions):
    """The batch, sampled by the first of some versions up to each sample's middle and by the last from there on."""
    made = []
    for trajectory in batch.trajectories:
        n = len(trajectory.token_ids)
        spans = (VersionSpan(0, n // 2, versions[0]), VersionSpan(n // 2, n, versions[-1]))
        made.append(replace(trajectory, versions=spans))
    return Batch(made, batch.rewards, batch.trials, batch.seed)


def test_a_batch_of_several_versions_is_refused_unless_the_algorithm_says_what_it_is(make_algorithm, make_batch):
    batch = make_batch(np.random.default_rng(2))
    with pytest.raises(ValueError, match=r"versions \[3, 4\].*mixed_versions.*'per_span' or 'decoupled'"):
        make_algorithm().check(of_versions(batch, [3, 4]))
    make_algorithm().check(of_versions(batch, [3]))
    for treated in ("per_span", "decoupled"):
        algorithm = make_algorithm(mixed_versions=treated)
        algorithm.check(of_versions(batch, [3, 4]))
        assert algorithm.decoupled is (treated == "decoupled")


def test_decoupled_and_a_correction_would_weight_twice(make_algorithm):
    with pytest.raises(ValidationError, match=r"IcePop and mixed_versions = 'decoupled' both weight tokens"):
        make_algorithm(correction=IcePop(), mixed_versions="decoupled")
    make_algorithm(correction=IcePop(), mixed_versions="per_span")


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"correction": IcePop()}, "set correction to None"), ({"mixed_versions": "decoupled"}, "set mixed_versions to 'per_span'")],
)
def test_weights_of_tokens_need_a_ratio_of_tokens(fields, said):
    with pytest.raises(ValidationError, match=f"SequenceSurrogate has one ratio a sample; {said}"):
        GRPO(optimizer=ADAM, objective=SequenceSurrogate(), **fields)
    with pytest.raises(ValidationError, match=f"NegativeLogLikelihood doesn't ask for; {said}"):
        GRPO(optimizer=ADAM, objective=NegativeLogLikelihood(), **fields)


def test_a_sequence_ratio_needs_one_advantage_a_sample():
    with pytest.raises(ValidationError, match=r"PPO's differ from token to token; use @ClippedSurrogate\(\), or GRPO"):
        PPO(**NETWORKS[PPO], objective=SequenceSurrogate())
    GRPO(optimizer=ADAM, objective=SequenceSurrogate(), normalizer="samples")

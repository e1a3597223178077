"""Each objective against its formula, a token at a time in float64, and its gradient against finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.training.normalizer import loss_weights
from t1x.training.objective import ClippedSurrogate, NegativeLogLikelihood, SequenceSurrogate

SEEDS = st.integers(0, 2**31)


class Ragged:
    """Loss tokens of some samples of unlike lengths."""

    def __init__(self, seed, spread=0.4, samples=7):
        random = np.random.default_rng(seed)
        self.counts = random.integers(1, 9, int(random.integers(1, samples + 1)))
        self.samples = np.repeat(np.arange(len(self.counts)), self.counts)
        m = len(self.samples)
        self.behaviour = random.normal(-1.5, 0.6, m)
        self.logprobs = self.behaviour + random.normal(scale=spread, size=m)
        self.by_sample = random.normal(size=len(self.counts))
        self.by_token = random.normal(size=m)

    def losses(self, objective, advantages, logprobs=None):
        c = torch.tensor(self.logprobs) if logprobs is None else logprobs
        return objective.losses(c, torch.tensor(self.behaviour), torch.tensor(advantages), torch.tensor(self.samples))


def surrogate(ratio, advantage, low, high):
    return -min(ratio * advantage, min(max(ratio, 1 - low), 1 + high) * advantage)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.floats(0.05, 0.5))
def test_clipped_surrogate_is_eq_18(seed, clip):
    batch = Ragged(seed)
    found = batch.losses(ClippedSurrogate(clip=clip), batch.by_token)
    ratios = [math.exp(c - o) for c, o in zip(batch.logprobs, batch.behaviour, strict=True)]
    expected = [surrogate(r, a, clip, clip) for r, a in zip(ratios, batch.by_token, strict=True)]
    np.testing.assert_allclose(found.losses, expected, atol=1e-12)
    np.testing.assert_allclose(found.watched["ratio"], ratios, rtol=1e-12)
    np.testing.assert_allclose(found.watched["kl"], [r - 1 - math.log(r) for r in ratios], atol=1e-12)
    np.testing.assert_allclose(found.watched["kl_k1"], [-math.log(r) for r in ratios], atol=1e-12)
    assert found.watched["clip_fraction"].tolist() == [float(not 1 - clip <= r <= 1 + clip) for r in ratios]


def sequence_ratios(batch):
    ratios, start = [], 0
    for count in batch.counts:
        logs = [batch.logprobs[j] - batch.behaviour[j] for j in range(start, start + count)]
        ratios.append(math.exp(sum(logs) / count))
        start += count
    return ratios


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.floats(0.01, 0.3), st.floats(0.01, 0.3))
def test_sequence_surrogate_is_gspos_eq_5_with_the_ratio_of_eq_7(seed, low, high):
    batch = Ragged(seed)
    found = batch.losses(SequenceSurrogate(clip_low=low, clip_high=high), np.repeat(batch.by_sample, batch.counts))
    ratios = sequence_ratios(batch)
    each = [surrogate(s, a, low, high) for s, a in zip(ratios, batch.by_sample, strict=True)]
    np.testing.assert_allclose(found.losses, np.repeat(each, batch.counts), atol=1e-12)
    np.testing.assert_allclose(found.watched["ratio"], np.repeat(ratios, batch.counts), rtol=1e-12)
    assert found.watched["clip_fraction"].tolist() == [float(not 1 - low <= s <= 1 + high) for s in np.repeat(ratios, batch.counts)]
    token_kl = [math.exp(d) - 1 - d for d in batch.logprobs - batch.behaviour]
    np.testing.assert_allclose(found.watched["kl"], token_kl, atol=1e-12)


def test_the_normaliser_of_samples_makes_it_the_papers_objective(make_batch):
    """(1/G) Σ_i min(s_i Â_i, clip(s_i) Â_i), over the samples of an optimizer step."""
    random = np.random.default_rng(0)
    batch = make_batch(random, samples=9)
    ragged = Ragged(0)
    ragged.counts, ragged.samples = batch.counts, np.repeat(np.arange(9), batch.counts)
    ragged.behaviour = random.normal(size=batch.loss_tokens)
    ragged.logprobs = ragged.behaviour + random.normal(scale=0.2, size=batch.loss_tokens)
    advantages = random.normal(size=9)
    losses = ragged.losses(SequenceSurrogate(clip_low=0.1, clip_high=0.2), np.repeat(advantages, batch.counts)).losses
    part = np.array([1, 4, 5, 8])
    expected = np.mean([surrogate(sequence_ratios(ragged)[i], advantages[i], 0.1, 0.2) for i in part])
    assert (losses.numpy() * loss_weights(batch, part, "samples")).sum() == pytest.approx(expected, abs=1e-12)


def test_gspos_clip_is_the_papers():
    assert (SequenceSurrogate().clip_low, SequenceSurrogate().clip_high) == (3e-4, 4e-4)


@settings(deadline=None, max_examples=20)
@given(SEEDS)
def test_negative_log_likelihood_asks_for_no_behaviour(seed):
    batch = Ragged(seed)
    objective = NegativeLogLikelihood()
    assert not objective.off_policy
    c, samples = torch.tensor(batch.logprobs), torch.tensor(batch.samples)
    found = objective.losses(c, None, torch.tensor(batch.by_token), samples).losses
    np.testing.assert_allclose(found, [-a * c for a, c in zip(batch.by_token, batch.logprobs, strict=True)], atol=1e-12)
    assert objective.losses(c, None, torch.ones_like(c), samples).losses.tolist() == (-batch.logprobs).tolist()


def by_sample(batch):
    return np.repeat(batch.by_sample, batch.counts)


def by_token(batch):
    return batch.by_token


OBJECTIVES = [
    (ClippedSurrogate(clip=0.2), by_token),
    (SequenceSurrogate(clip_low=0.1, clip_high=0.15), by_sample),
    (NegativeLogLikelihood(), by_token),
]


@pytest.mark.parametrize(("objective", "advantages"), OBJECTIVES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_gradients_are_those_of_finite_differences(objective, advantages, seed):
    """Of a sum under unlike weights, so that a loss that reaches other tokens of its sample shows."""
    batch = Ragged(seed)
    weights = torch.tensor(np.random.default_rng(seed).uniform(size=len(batch.samples)))
    step = 1e-6

    def total(logprobs):
        return (batch.losses(objective, advantages(batch), logprobs).losses * weights).sum()

    logprobs = torch.tensor(batch.logprobs, requires_grad=True)
    total(logprobs).backward()
    for j in range(len(batch.logprobs)):
        up, down = (torch.tensor(batch.logprobs + sign * step * (np.arange(len(batch.logprobs)) == j)) for sign in (1, -1))
        assert logprobs.grad[j].item() == pytest.approx((total(up) - total(down)).item() / (2 * step), abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_at_ratio_1_all_objectives_have_the_policy_gradient(seed):
    batch = Ragged(seed, spread=0.0)
    for objective, _ in OBJECTIVES:
        logprobs = torch.tensor(batch.logprobs, requires_grad=True)
        batch.losses(objective, by_sample(batch), logprobs).losses.sum().backward()
        np.testing.assert_allclose(logprobs.grad, -by_sample(batch), atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.data())
def test_normalisers_are_means_over_tokens_and_over_samples_means(make_ragged_batch, seed, data):
    batch = make_ragged_batch(seed)
    losses = np.random.default_rng(seed).normal(size=batch.loss_tokens)
    part = np.array(sorted(data.draw(st.sets(st.integers(0, len(batch.counts) - 1), min_size=1))))
    rows = [losses[offset : offset + count] for offset, count in zip(batch.offsets, batch.counts, strict=True)]
    chosen = [rows[index].tolist() for index in part]
    tokens = [loss for row in chosen for loss in row]
    means = [sum(row) / len(row) for row in chosen]
    assert losses @ loss_weights(batch, part, "tokens") == pytest.approx(sum(tokens) / len(tokens), abs=1e-12)
    assert losses @ loss_weights(batch, part, "samples") == pytest.approx(sum(means) / len(means), abs=1e-12)

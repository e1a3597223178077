"""Margins and flips: every number against a slow version."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_gap import jackknife

from t1x.campaign.margin import Margins
from t1x.campaign.margin_pass import free_pass
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.training.batch import Batch
from t1x.trajectory.records import Trajectory, VersionSpan

MODEL = Qwen3Moe(
    vocab_size=31,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=8,
    router_init_std=0.5,
)


def random_margins(trials: int = 40, layers: int = 3) -> Margins:
    """Small margins flip more often, in some trials more than in others; margins are rounded, so that some are equal."""
    random = np.random.default_rng(5)
    of = np.repeat(np.arange(trials), random.integers(3, 12, trials))
    margins = random.exponential(0.3, (len(of), layers)).round(2) + 0.004
    flipped = random.random(margins.shape) < 0.6 * np.exp(-6 * margins) * random.uniform(0.3, 1.7, trials)[of][:, None]
    distances = np.where(random.random(len(of)) < 0.6, random.exponential(1 + 3 * flipped.any(1)), np.nan)
    return Margins(margins, flipped, of, distances, trials)


def slow_auc(found: Margins, which: np.ndarray) -> float:
    """All pairs of one that flips and one that stays, over some of the trials."""
    pairs = [
        (found.margins[p, layer], found.flipped[p, layer])
        for p in range(len(found.trials))
        if found.trials[p] in which
        for layer in range(found.margins.shape[1])
    ]
    flips, stays = ([margin for margin, flip in pairs if flip is np.bool_(wanted)] for wanted in (True, False))
    return sum(1.0 if a < b else 0.5 if a == b else 0.0 for a, b in product(flips, stays)) / (len(flips) * len(stays))


def test_the_area_under_the_curve_counts_pairs_and_its_error_is_the_jackknifes() -> None:
    found = random_margins()
    area = found.auc
    assert area is not None
    assert 0.6 < area.mean < 0.95
    assert area.mean == pytest.approx(slow_auc(found, np.arange(40)))
    assert area.stderr == pytest.approx(jackknife(lambda which: slow_auc(found, which), 40), rel=0.1)


def test_rates_and_gaps_are_those_of_loops() -> None:
    found = random_margins()
    positions, layers = found.margins.shape
    assert found.rate.mean == pytest.approx(
        sum(found.flipped[p, i] for p in range(positions) for i in range(layers)) / positions / layers
    )
    anywhere = [any(found.flipped[p]) for p in range(positions)]
    assert found.any_layer.mean == pytest.approx(sum(anywhere) / positions)
    for estimate, wanted in zip(found.gaps, (False, True), strict=True):
        values = [d for d, flips in zip(found.distances, anywhere, strict=True) if flips is wanted and d == d]
        assert estimate is not None
        assert estimate.mean == pytest.approx(sum(values) / len(values))

        def without(which: np.ndarray, wanted: bool = wanted) -> float:
            kept = [p for p in range(positions) if found.trials[p] in which and anywhere[p] is wanted]
            return float(np.nanmean(found.distances[kept]))

        assert estimate.stderr == pytest.approx(jackknife(without, 40), rel=0.1)


def test_the_bins_hold_all_pairs_in_order_and_their_rates_fall() -> None:
    found = random_margins()
    bins = found.tenths
    assert len(bins) == 10
    ordered = sorted(zip(found.margins.ravel().tolist(), range(found.margins.size), strict=True))
    sizes = [len(part) for part in np.array_split(ordered, 10)]
    at = 0
    for each, size in zip(bins, sizes, strict=True):
        part = ordered[at : at + size]
        at += size
        assert (each.low, each.high) == (part[0][0], part[-1][0])
        assert each.median == pytest.approx(np.median([margin for margin, _ in part]))
        assert each.flips.mean == pytest.approx(np.mean([found.flipped.ravel()[index] for _, index in part]))
    assert bins[0].flips.mean > 5 * bins[-1].flips.mean


def test_steps_are_equal_on_a_logarithmic_scale_and_hold_all_pairs() -> None:
    found = random_margins()
    steps = found.steps
    for each, following in pairwise(steps):
        assert each.low <= each.median <= each.high < following.low
    held = [(found.margins >= each.low) & (found.margins <= each.high) for each in steps]
    assert sum(each.sum() for each in held) == found.margins.size
    for each, pairs in zip(steps, held, strict=True):
        assert each.flips.mean == pytest.approx(found.flipped[pairs].mean())
    width = np.log(found.margins.max() / np.quantile(found.margins, 0.01)) / 13
    assert max(np.log(each.high / each.low) for each in steps[1:]) <= width


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1))
def test_no_engine_whose_scores_differ_by_less_can_have_flipped_these_pairs(seed: int, epsilon: float) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(50, 2, 6))
    others = scores + random.uniform(-epsilon, epsilon, scores.shape)
    chosen, theirs = (np.sort(np.argsort(-each, -1)[..., :2], -1) for each in (scores, others))
    ordered = -np.sort(-scores, -1)
    found = Margins(ordered[..., 1] - ordered[..., 2], (chosen != theirs).any(-1), np.zeros(50, np.int64), np.zeros(50), 1)
    assert found.perturbation is None or 0 < found.perturbation <= epsilon
    least = np.where(found.flipped, found.margins, 0).max() / 2
    assert (found.perturbation or 0) == least, "of a pair that flipped"


def test_where_nothing_flips_nothing_is_foretold() -> None:
    few = random_margins(trials=4)
    still = Margins(few.margins, np.zeros_like(few.flipped), few.trials, few.distances, few.count)
    assert still.auc is None
    assert still.perturbation is None
    assert still.gaps[1] is None
    assert still.rate == (0, 0)


def trajectory(random: np.random.Generator, substituted: tuple[int, ...]) -> Trajectory:
    n = int(random.integers(8, 20))
    mask = random.random(n) < 0.5
    mask[0], mask[-1] = False, True
    for row in substituted:
        mask[row + 1] = False
    return Trajectory(
        token_ids=random.integers(0, 31, n).astype(np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -1, 0).astype(np.float32),
        routed_experts=np.argsort(random.random((n - 1, 2, 6)), axis=-1)[..., :2].astype(np.uint8),
        versions=(VersionSpan(0, n, 0),),
        boundaries=(),
        temperature=0.7,
        substituted_rows=substituted,
    )


@pytest.mark.parametrize("tokens_per_pass", [1, 40, 4096])
def test_the_pass_finds_margins_flips_and_entropies_however_it_is_split(tokens_per_pass: int) -> None:
    """Against one pass a trajectory, sorted by hand."""
    random, policy = np.random.default_rng(1), MODEL.build(3)
    samples = [trajectory(random, (3, 5) if index == 1 else ()) for index in range(5)]
    which = np.array([0, 0, 1, 3, 3])
    batch = Batch(samples, np.zeros(4), which, seed=0)
    distances = np.arange(batch.loss_tokens, dtype=np.float64)
    free = free_pass(policy, batch, tokens_per_pass)
    found = free.of(batch, distances)
    margins, flipped, trials, gaps, entropies = [], [], [], [], []
    token = 0
    for sample, trial in zip(samples, which, strict=True):
        with torch.no_grad():
            output = policy(torch.from_numpy(sample.token_ids[None, :-1].astype(np.int64)))
            logprobs = (policy.logits(output.hidden[0]) / 0.7).log_softmax(-1).numpy()
        for row in range(len(sample.token_ids) - 1):
            scores = [sorted(logits[row].tolist(), reverse=True) for logits in output.router_logits]
            chosen = [set(np.argsort(-logits[row].numpy())[:2].tolist()) for logits in output.router_logits]
            recorded = [set(experts) for experts in sample.routed_experts[row].tolist()]
            gap = np.nan
            if sample.loss_mask[row + 1]:
                gap, token = float(token), token + 1
                entropies.append(-(np.exp(logprobs[row]) * logprobs[row]).sum())
            if row not in sample.substituted_rows:
                margins.append([each[1] - each[2] for each in scores])
                flipped.append([a != b for a, b in zip(chosen, recorded, strict=True)])
                trials.append(trial)
                gaps.append(gap)
    assert token == batch.loss_tokens
    np.testing.assert_allclose(found.margins, margins, atol=1e-5)
    np.testing.assert_array_equal(found.flipped, flipped)
    np.testing.assert_array_equal(found.trials, trials)
    np.testing.assert_array_equal(found.distances, gaps)
    np.testing.assert_allclose(free.entropies, entropies, rtol=1e-4)
    assert found.count == 4


def test_a_model_that_uses_all_its_experts_has_no_margin() -> None:
    model = MODEL.model_copy(update={"num_experts": 2})
    random = np.random.default_rng(1)
    sample = trajectory(random, ())
    both = np.broadcast_to(np.array([1, 0], np.uint8), (*sample.routed_experts.shape[:2], 2))
    alike = Trajectory(sample.token_ids, sample.loss_mask, sample.logprobs, both, sample.versions, (), 1.0)
    free = free_pass(model.build(0), Batch([alike], np.zeros(1), np.zeros(1, np.int64), seed=0), 100)
    assert free.margins is None
    assert not free.flipped.any(), "the order of a row's experts isn't another choice"

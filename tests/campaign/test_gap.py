"""The gap's numbers: against slow loops and against the jackknife."""

from collections.abc import Callable

import numpy as np
import pytest

from t1x.campaign.gap import Gap, ratio
from t1x.text.bundled import BundledTokenizer
from t1x.text.canonical import noncanonical


def random_gap(random: np.random.Generator, trials: int, like: Gap | None = None) -> Gap:
    """Longer trials have greater gaps; one that is like another shares its part."""
    counts = random.integers(0, 20, trials) if like is None else like.counts
    distances = np.concatenate([random.exponential(1 + 0.1 * n, n) for n in counts])
    return Gap(distances if like is None else distances + like.distances, counts)


def jackknife(statistic: Callable[[np.ndarray], float], trials: int) -> float:
    """Standard error of a statistic of trials, each left out once."""
    left_out = np.array([statistic(np.delete(np.arange(trials), index)) for index in range(trials)])
    return float(np.sqrt((trials - 1) / trials * ((left_out - left_out.mean()) ** 2).sum()))


def mean_of(gap: Gap, which: np.ndarray) -> float:
    """By loops, over some of the trials."""
    starts = np.cumsum(gap.counts) - gap.counts
    values = [gap.distances[starts[trial] + token] for trial in which for token in range(gap.counts[trial])]
    return sum(values) / len(values)


def test_mean_and_paired_difference_with_the_errors_of_the_jackknife() -> None:
    random = np.random.default_rng(3)
    one = random_gap(random, 60)
    other = random_gap(random, 60, like=one)
    everyone = np.arange(60)
    assert one.estimate.mean == pytest.approx(mean_of(one, everyone))
    assert one.estimate.stderr == pytest.approx(jackknife(lambda which: mean_of(one, which), 60), rel=0.05)
    difference = other.above(one)
    assert difference.mean == pytest.approx(mean_of(other, everyone) - mean_of(one, everyone))
    paired = jackknife(lambda which: mean_of(other, which) - mean_of(one, which), 60)
    assert difference.stderr == pytest.approx(paired, rel=0.05)
    assert difference.stderr < np.hypot(one.estimate.stderr, other.estimate.stderr), "the two share their trials"


def test_of_a_single_trial_nobody_knows_an_error() -> None:
    one = Gap(np.array([0.5, 1.5]), np.array([0, 2, 0]))
    assert one.estimate == (1.0, None)
    assert one.above(one) == (0.0, None)
    assert ratio(np.array([1.0, 3.0]), np.array([1, 1])) == (2.0, pytest.approx(1.0)), "√(2 / (2 · 1))"


def test_the_standard_error_is_that_of_repeated_samples() -> None:
    random = np.random.default_rng(0)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        counts = random.integers(1, 20, 200)
        return np.array([random.exponential(1 + 0.1 * n, n).sum() for n in counts]), counts

    ratios, errors = zip(*(ratio(*sample()) for _ in range(400)), strict=True)
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.15)


def test_ids_that_encoding_anew_replaces_are_told_from_those_that_it_keeps() -> None:
    tokenizer = BundledTokenizer().build()
    stop = np.array(tokenizer.stop_ids[:1], np.int32)
    canonical = np.concatenate([tokenizer.encode("cat notes.txt | sort"), stop])
    assert len(canonical) < 20, "some id stands for several characters"
    assert not noncanonical(tokenizer, canonical).any()
    longest = int(np.argmax([len(tokenizer.decode(canonical[i : i + 1])) for i in range(len(canonical))]))
    spelled = np.concatenate([tokenizer.encode(letter) for letter in tokenizer.decode(canonical[longest : longest + 1])])
    split = np.concatenate([canonical[:longest], spelled, canonical[longest + 1 :]]).astype(np.int32)
    assert tokenizer.decode(split) == tokenizer.decode(canonical)
    flags = noncanonical(tokenizer, split)
    assert np.flatnonzero(flags).tolist() == list(range(longest, longest + len(spelled)))
    broken = np.append(tokenizer.encode("é")[:1], stop).astype(np.int32)
    assert len(tokenizer.encode("é")) > 1
    assert noncanonical(tokenizer, broken).tolist() == [True, False], "half a character is no text"

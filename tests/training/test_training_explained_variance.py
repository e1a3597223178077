from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from t1x.training.explained_variance import ExplainedVariance, trial_explained_variance

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


def test_equals_eq_19():
    random = np.random.default_rng(0)
    returns, values = random.normal(size=500), random.normal(size=500)
    assert ExplainedVariance.of(returns, values).value == pytest.approx(1 - np.var(returns - values) / np.var(returns), abs=1e-12)


def test_keeps_its_precision_far_from_zero():
    random = np.random.default_rng(0)
    returns = 1e9 + random.integers(0, 100, 1000) / 100
    values = returns - random.integers(0, 50, 1000) / 100
    exact = 1 - np.var(returns - values) / np.var(returns - 1e9)
    whole = ExplainedVariance.of(returns[:300], values[:300]) + ExplainedVariance.of(returns[300:], values[300:])
    assert whole.value == pytest.approx(exact, rel=1e-6)


@settings(deadline=None)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(2, 60), st.just(2)), elements=numbers),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_merging_parts_gives_what_the_whole_gives(data, cuts):
    returns, values = data[:, 0], data[:, 1]
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    merged = ExplainedVariance.of(returns[:0], values[:0])
    for start, stop in pairwise(edges):
        merged = merged + ExplainedVariance.of(returns[start:stop], values[start:stop])
    whole = ExplainedVariance.of(returns, values)
    for part, other in ((merged.returns, whole.returns), (merged.errors, whole.errors)):
        assert part.count == other.count
        assert part.mean == pytest.approx(other.mean, rel=1e-9, abs=1e-9)
        assert part.squares == pytest.approx(other.squares, rel=1e-9, abs=1e-6)


@settings(deadline=None)
@given(numbers, st.integers(1, 50), st.integers(0, 50))
def test_missing_where_the_returns_do_not_vary(constant, first, second):
    random = np.random.default_rng(0)
    parts = [ExplainedVariance.of(np.full(n, constant), random.normal(size=n)) for n in (first, second)]
    assert (parts[0] + parts[1]).value is None


def test_negative_where_the_critic_adds_variance():
    returns = np.array([0.0, 1.0, 0.0, 1.0])
    assert ExplainedVariance.of(returns, -returns).value == pytest.approx(-3.0)


def test_trial_level_takes_one_point_a_trial():
    """Three trials, the second in two chunks, the third far longer than the others: its tokens count once."""
    counts, trials = np.array([2, 1, 2, 50]), np.array([0, 1, 1, 2])
    returns = np.repeat([1.0, 2.0, 2.0, 6.0], counts)
    values = np.concatenate([[1.5, 9], [2.5], [9, 9], [4.0], np.full(49, 6.0)])
    expected = 1 - np.var([1 - 1.5, 2 - 2.5, 6 - 4.0]) / np.var([1.0, 2.0, 6.0])
    assert trial_explained_variance(returns, values, counts, trials) == pytest.approx(expected)

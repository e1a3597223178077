"""Means over seeds, paired differences and main effects, against numbers that were worked out apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.campaign.estimate import Estimate, Value, differences, main_effect, over_seeds

RATES = st.floats(0, 1)


@given(st.dictionaries(st.integers(0, 9), RATES, min_size=2))
def test_the_error_over_seeds_is_that_of_a_mean(rates: dict[int, float]) -> None:
    estimate = over_seeds({seed: Value(rate, 0.5) for seed, rate in rates.items()})
    values = np.array(list(rates.values()))
    assert estimate is not None
    assert (estimate.seeds, estimate.over) == (len(rates), "seeds")
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.error == pytest.approx(values.std(ddof=1) / math.sqrt(len(values)), abs=1e-12)


def test_one_seed_has_the_error_over_tasks() -> None:
    estimate = over_seeds({3: Value(0.5, 0.04)})
    assert estimate == Estimate(0.5, 0.04, 1)
    assert estimate.over == "tasks"
    assert over_seeds({}) is None


def test_differences_are_paired_by_seed() -> None:
    """What seeds have in common goes: both settings vary by 0.2, their difference doesn't vary at all."""
    baseline = {0: Value(0.3, 0.03), 1: Value(0.5, 0.03), 2: Value(0.9, 0.03)}
    paired = differences({1: Value(0.6, 0.04), 0: Value(0.4, 0.04)}, baseline)
    assert set(paired) == {0, 1}
    estimate = over_seeds(paired)
    assert estimate is not None
    assert estimate.mean == pytest.approx(0.1)
    assert estimate.error == pytest.approx(0, abs=1e-9)
    assert paired[0].stderr == pytest.approx(0.05)


def test_a_main_effect_is_the_mean_over_the_other_axes_by_seed() -> None:
    on = ({0: Value(0.5, 0.0), 1: Value(0.7, 0.0)}, {0: Value(0.4, 0.0), 1: Value(0.4, 0.0)})  # 0.1, 0.3
    off = ({0: Value(0.5, 0.0), 1: Value(0.4, 0.0)}, {0: Value(0.2, 0.0)})  # 0.3; seed 1 has no pair
    estimate, pairs = main_effect([on, off])
    assert pairs == 3
    assert estimate is not None
    assert estimate.mean == pytest.approx((0.2 + 0.3) / 2)
    assert estimate.error == pytest.approx(np.std([0.2, 0.3], ddof=1) / math.sqrt(2))
    assert main_effect([({0: Value(0.5, 0.0)}, {})]) == (None, 0)


def test_a_main_effect_of_one_seed_has_the_error_of_a_mean_over_tasks() -> None:
    pair = ({0: Value(0.5, 0.03)}, {0: Value(0.4, 0.04)})
    estimate, _ = main_effect([pair, pair])
    assert estimate is not None
    assert estimate.error == pytest.approx(0.05 / math.sqrt(2))

import numpy as np
import pytest

from t1x.training.mismatch import gap_metrics


def test_gaps_are_sums_over_all_tokens_of_the_step():
    random = np.random.default_rng(0)
    q, o, c = (random.normal(size=1000).astype(np.float32) for _ in range(3))
    expected = {
        "mismatch/engine_gap": sum(abs(float(a) - float(b)) for a, b in zip(o, q, strict=True)) / 1000,
        "mismatch/version_skew": sum(abs(float(a) - float(b)) for a, b in zip(c, o, strict=True)) / 1000,
        "mismatch/logprob_gap": sum(abs(float(a) - float(b)) for a, b in zip(c, q, strict=True)) / 1000,
    }
    assert gap_metrics(q, o, c) == pytest.approx(expected, rel=1e-9)


def test_a_long_sample_weighs_as_its_tokens():
    """One sample of 1 token with gap 1, one of 99 without: 0.01, not the 0.5 of a mean of means."""
    o, q = np.zeros(100), np.array([1.0] + [0.0] * 99)
    assert gap_metrics(q, o, o)["mismatch/engine_gap"] == pytest.approx(0.01)


def test_equal_vectors_have_no_gap():
    q = np.random.default_rng(0).normal(size=50)
    assert set(gap_metrics(q, q, q).values()) == {0.0}

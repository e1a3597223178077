import numpy as np
import pytest
import torch

from t1x.training.step_metrics import StepMetrics


def test_means_and_quantiles_are_over_all_tokens_of_the_step():
    random = np.random.default_rng(0)
    ratios, losses = random.lognormal(size=301), random.normal(size=301)
    metrics = StepMetrics()
    for part in np.split(np.arange(301), [1, 7, 250]):
        metrics.add(ratio=torch.from_numpy(ratios[part]), loss=torch.from_numpy(losses[part]))
    found = metrics.values()
    ordered = np.sort(ratios)
    assert found == pytest.approx(
        {
            "loss": losses.mean(),
            "ratio_mean": ratios.mean(),
            "ratio_p01": ordered[3],
            "ratio_p50": ordered[150],
            "ratio_p99": ordered[297],
            "ratio_max": ordered[300],
        }
    )


def test_values_that_are_not_finite_are_left_out():
    metrics = StepMetrics()
    metrics.add(loss=torch.tensor([1.0, float("nan"), 3.0]), entropy=torch.tensor([float("inf")]))
    assert metrics.values() == {"loss": 2.0}

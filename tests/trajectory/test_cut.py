"""Samples that are too long for the model."""

import numpy as np

from t1x.training.batch import Batch
from t1x.trajectory.cut import cut_to, fitted
from t1x.trajectory.records import Trajectory, VersionSpan


def sample() -> Trajectory:
    """Loss at 1, 2, 4, 5 and 6 of 7 ids."""
    random = np.random.default_rng(0)
    mask = np.array([False, True, True, False, True, True, True])
    return Trajectory(
        token_ids=np.arange(7, dtype=np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -random.random(7), 0).astype(np.float32),
        routed_experts=random.integers(0, 9, (6, 2, 2)).astype(np.uint8),
        versions=(VersionSpan(1, 3, 0), VersionSpan(4, 6, 1), VersionSpan(6, 7, 2)),
        boundaries=(),
        temperature=1.0,
        substituted_rows=(2, 5),
    )


def test_a_sample_is_cut_in_all_its_streams() -> None:
    whole = sample()
    assert cut_to(whole, 7) is whole
    cut = cut_to(whole, 5)
    for name, length in (("token_ids", 5), ("loss_mask", 5), ("logprobs", 5), ("routed_experts", 4)):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name)[:length])
    assert (cut.versions, cut.substituted_rows) == ((VersionSpan(1, 3, 0), VersionSpan(4, 5, 1)), (2,))
    assert Batch([cut], np.zeros(1), np.zeros(1, np.int64), seed=0).loss_tokens == 3


def test_what_cutting_costs_is_told() -> None:
    found, lost = fitted([sample(), sample()], 5)
    assert ([len(each.token_ids) for each in found], lost) == ([5, 5], 4)
    assert fitted([sample()], 1) == ([], 5), "nothing is left that could be trained on"
    assert fitted([sample()], 7)[1] == 0

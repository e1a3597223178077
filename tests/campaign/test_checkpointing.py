"""When checkpoints are written."""

import pytest

from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.suite import PoolSuite
from t1x.tasks.synthetic import SyntheticPool


def test_weights_that_would_never_be_written_are_refused() -> None:
    Checkpointing(every=5, weights_every=10)
    with pytest.raises(ValueError, match="set it to a multiple of that"):
        Checkpointing(every=3, weights_every=10)


def test_the_suite_that_decides_asks_for_a_checkpoint() -> None:
    suites = [PoolSuite(name=name, pool=SyntheticPool(split="validation", size=1), greedy=1) for name in ("validation", "test")]
    assert Checkpointing(best="validation").judges(suites)
    assert not Checkpointing(best="validation").judges(suites[1:])
    assert not Checkpointing().judges(suites)

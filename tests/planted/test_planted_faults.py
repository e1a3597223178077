"""Faults that are planted are found by the tests that should find them: five in CI, all in `make soak`."""

import numpy as np
import pytest
from faults import FAULTS, QUICK
from plant import baseline, copy, finders, plant
from verdict import proves

from t1x.parallel.plan import MegatronPlan
from t1x.parallel.sharding import Sharding
from t1x.trajectory.routing import padding_rows, substitute

ROWS = np.zeros((2, 1, 1), np.uint8)


def test_every_fault_still_fits_the_library():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20
    with copy() as folder:
        for fault in FAULTS:
            before = (folder / "t1x" / fault.file).read_text(encoding="utf-8")
            plant(fault, folder)
            (folder / "t1x" / fault.file).write_text(before, encoding="utf-8")


def test_a_fault_whose_text_is_gone_is_an_error():
    with copy() as folder, pytest.raises(ValueError, match="stands 0 times"):
        plant(FAULTS[0]._replace(old="what nobody wrote"), folder)


def two_that_hypothesis_found():
    raise ExceptionGroup("two", [TypeError(), AssertionError()])


@pytest.mark.parametrize(
    ("fails", "proof"),
    [
        pytest.param(lambda: pytest.fail("did not raise"), True, id="pytest's own"),
        pytest.param(two_that_hypothesis_found, True, id="one of two"),
        pytest.param(lambda: substitute(ROWS[:0], predicts_loss=True), True, id="the library's own error"),
        pytest.param(lambda: Sharding(MegatronPlan(), ()), True, id="a ValueError that the library raises"),
        pytest.param(lambda: np.concatenate([]), False, id="a ValueError of numpy"),
        pytest.param(lambda: padding_rows(None, 0, 1), False, id="an AttributeError in the library"),
        pytest.param(lambda: ROWS[9], False, id="an IndexError"),
    ],
)
def test_a_crash_proves_nothing(fails, proof):
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        fails()
    assert proves(caught.value) == proof


@pytest.mark.ci
def test_a_fault_that_only_crashes_is_not_found():
    test = "tests/trajectory/test_stitching.py::test_versions_are_spans"
    crash = FAULTS[0]._replace(new="self._rows.extend(None)", tests=(test,))
    assert finders(crash)[test].startswith("crashes:")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(QUICK, id="five", marks=pytest.mark.ci),
        pytest.param([fault.name for fault in FAULTS], id="all", marks=pytest.mark.soak),
    ],
)
def test_planted_faults_are_found(names):
    faults = [fault for fault in FAULTS if fault.name in names]
    assert len(faults) == len(names)
    assert baseline(faults) == ""
    missed = {f"{fault.name}: {test}": wrong for fault in faults for test, wrong in finders(fault).items() if wrong}
    assert missed == {}

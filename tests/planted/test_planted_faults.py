"""Faults that are planted are found by the tests that should find them: five in CI, all in `make soak`."""

import pytest
from faults import FAULTS, QUICK
from plant import baseline, copy, finders, plant
from verdict import proves

from t1x.trajectory.stitcher import RoutingRecordError


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


@pytest.mark.parametrize(
    ("error", "proof"),
    [
        (AssertionError(), True),
        (pytest.fail.Exception(), True),
        (RoutingRecordError(), True),
        (ExceptionGroup("two that hypothesis found", [TypeError(), AssertionError()]), True),
        (ExceptionGroup("two that hypothesis found", [TypeError(), IndexError()]), False),
        (NameError(), False),
        (ValueError(), False),
    ],
    ids=repr,
)
def test_a_crash_proves_nothing(error, proof):
    assert proves(error) == proof


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

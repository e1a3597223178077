"""A start from demonstrations is looked at before anything takes long."""

from pathlib import Path

import pytest
from stores import with_store

import t1x
from t1x.config import load
from t1x.tracking.log import read_log


def test_a_demonstration_too_long_for_the_harness_is_told_before_the_first_evaluation(tmp_path: Path) -> None:
    start = ("Campaign.start = @NamedStart()", "NamedStart.name = 'x'", "NamedStart.source = @SupervisedStart()")
    places = (f"Campaign.runs = '{with_store(tmp_path / 'runs')}'", "ShellHarness.max_command_tokens = 5")
    resolved = load("experiments/quickstart.gin", site="laptop", set=(*places, *start))
    told = r"^demonstration of task demo-0\S+: command \d is too long: ShellHarness\.max_command_tokens = 5, needs \d+ or more$"
    with pytest.raises(ValueError, match=told):
        t1x.run(resolved)
    (failed,) = t1x.runs(tmp_path / "runs")
    assert not any(entry.metrics for entry in read_log(failed.folder))

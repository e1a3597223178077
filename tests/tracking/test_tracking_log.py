"""What a metric may be; MLflow's own validator is the reference for names."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException
from mlflow.utils.validation import _validate_metric, _validate_param

from t1x.tracking.log import MetricLog, check_name, check_value
from t1x.tracking.params import flatten


def accepts(check, *args) -> bool:
    try:
        check(*args)
    except (ValueError, MlflowException):
        return False
    return True


@given(st.text(max_size=8) | st.text(alphabet="ab/. :-_(@\n", max_size=8) | st.integers(240, 260).map(lambda n: "n" * n))
def test_names_are_those_that_mlflow_accepts(name):
    ours = accepts(check_name, "metric", name)
    if ours:
        _validate_metric(name, 1.0, 0, 0)
        _validate_param(name, "x")
    else:
        assert name.endswith("\n") or not accepts(_validate_metric, name, 1.0, 0, 0)


@pytest.mark.parametrize("value", [1, 0.5, -3.0, np.float32(0.25), np.int64(7)])
def test_numbers_are_kept(value):
    assert check_value("m", value) == float(value)
    assert type(check_value("m", value)) is float


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, np.float32("nan"), True, "0.5", [1.0], 1j, np.array([1.0]), np.bool_(True)]
)
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ValueError, match="metric 'actor/loss' is"):
        check_value("actor/loss", value)


def test_steps_go_forward_for_each_metric(tmp_path):
    with MetricLog(tmp_path) as log:
        log.write({"sft/loss": 1.0}, 500)
        log.write({"rollout/reward_mean": 1.0}, 0)
        for step in (500, 3):
            with pytest.raises(ValueError, match=f"'sft/loss' was already logged at step 500 and can't be logged at step {step}"):
                log.write({"sft/loss": 1.0}, step)
        assert log.write({"sft/loss": 2.0, "missing": None}, 501) == {"sft/loss": 2.0}
        with pytest.raises(ValueError, match="'missing'"):
            log.write({"missing": 1.0}, 501)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 3


def test_two_values_of_one_parameter_are_refused():
    with pytest.raises(ValueError, match=r"'a\.b' is given twice"):
        flatten({"a.b": 1, "a": {"b": 2}})


def test_parameter_name_that_mlflow_refuses():
    with pytest.raises(ValueError, match="parameter '@PPO"):
        flatten({"@PPO": 1})

"""Numbers as a reader is told them."""

import math

import pytest

from t1x.campaign.wording import duration, with_error


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89.4, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (36_000, "10.0 h")]
)
def test_a_duration_has_the_unit_that_a_reader_expects(seconds, said):
    assert duration(seconds) == said


def test_an_error_that_is_not_known_is_a_question_mark():
    assert with_error(0.5, 0.0251) == "0.500 ± 0.025"
    assert with_error(0.5, 0.02, "+") == "+0.500 ± 0.020"
    assert with_error(0.5, math.nan) == "0.500 ± ?"


@pytest.mark.parametrize(
    ("mean", "error", "said"),
    [
        (0.00652, 0.00031, "0.00652 ± 0.00031"),
        (0.0123, math.nan, "0.0123 ± ?"),
        (-3.98e-7, 1.2e-8, "-3.98e-07 ± 1.20e-08"),
        (1.0, 0.0, "1.000 ± 0.000"),
        (0.0, 0.0, "0.000 ± 0.000"),
        (0.1, 1.4e-17, "0.100000 ± 0.000000"),
    ],
)
def test_small_numbers_keep_digits_that_say_something(mean, error, said):
    assert with_error(mean, error) == said

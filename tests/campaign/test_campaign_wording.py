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

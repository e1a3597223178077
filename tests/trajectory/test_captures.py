import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.trajectory.captures import CapturedRows


def rows(start, n, tag):
    """[n, 1, 2]: where a row stands, and which capture it is of."""
    return np.array([[[start + i, tag]] for i in range(n)], np.uint16).reshape(n, 1, 2)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8), st.integers(0, 40), st.integers(0, 40))
@promise
def test_a_position_has_the_row_that_was_captured_last(captures, start, stop):
    captured, expected = CapturedRows(), []
    for tag, (back, n) in enumerate(captures):
        at = max(0, len(expected) - back)
        captured.resume(at, rows(at, n, tag))
        expected = expected[:at] + [[[at + i, tag]] for i in range(n)]
        assert len(captured) == len(expected)
    assert captured[:].tolist() == expected
    assert captured[start:stop].tolist() == expected[start:stop]
    assert captured[start:].shape[1:] == (1, 2)


def test_rows_of_one_capture_are_not_copied():
    captured, first, second = CapturedRows(), rows(0, 5, 0), rows(3, 5, 1)
    captured.resume(0, first)
    captured.resume(3, second)
    assert np.shares_memory(captured[0:3], first)
    assert np.shares_memory(captured[3:], second)
    assert not np.shares_memory(captured[2:4], first)

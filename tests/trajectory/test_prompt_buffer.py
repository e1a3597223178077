import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.trajectory.prompt import GrowingArray, PromptBuffer


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=300), max_size=12))
@settings(deadline=None)
def test_a_view_stays_what_it_was(parts):
    buffer, whole, views = PromptBuffer(), [], []
    for part in parts:
        buffer.extend(np.array(part, np.int64))
        whole += part
        views.append((buffer.view(), list(whole)))
    assert len(buffer) == len(whole)
    for view, expected in views:
        assert view.dtype == np.int32
        assert view.tolist() == expected


def test_views_are_read_only_and_share_the_buffer():
    buffer = PromptBuffer([1, 2, 3])
    early = buffer.view()
    buffer.extend([4])
    assert np.shares_memory(early, buffer.view())
    with pytest.raises(ValueError, match="read-only"):
        early[0] = 9
    buffer.extend([5])
    assert buffer.view().tolist() == [1, 2, 3, 4, 5]


def test_appending_copies_the_history_logarithmically_often():
    rows = GrowingArray(np.uint8, (2, 3), capacity=1)
    moves, before = 0, rows.view()
    for _ in range(1000):
        rows.extend(np.ones((1, 2, 3)))
        moves += not np.shares_memory(before, rows.view()) and len(before) > 0
        before = rows.view()
    assert rows.view().shape == (1000, 2, 3)
    assert moves <= 10

"""How far two sequences agree, against going through them one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.text.prefix import common_ids, common_text


def slow(one, other):
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@promise
@given(st.text("ab\U0001f600", max_size=40), st.text("ab\U0001f600", max_size=3), st.integers(0, 40))
def test_texts_begin_alike_as_far_as_they_do(one, more, cut):
    other = one[:cut] + more
    assert common_text(one, other) == slow(one, other)


@promise
@given(st.lists(st.integers(0, 1), max_size=200), st.lists(st.integers(0, 1), max_size=3), st.integers(0, 200))
def test_ids_begin_alike_as_far_as_they_do(one, more, cut):
    other = one[:cut] + more
    assert common_ids(np.array(one), np.array(other)) == slow(one, other)


@promise
@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(0, 50_000))
def test_long_ids_too(one, other, at):
    differing = np.zeros(other, np.int32)
    differing[at:] = 1
    assert common_ids(np.zeros(one, np.int32), differing) == min(one, other, at)

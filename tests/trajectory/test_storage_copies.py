"""Rows that are told by where they stand elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise

from t1x.trajectory.prefix import common_prefix
from t1x.trajectory.storage_copies import CANDIDATES, Copies, find_copies

slices = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=6)


@promise
@given(slices=slices, seed=st.integers(0, 1000), kinds=st.sampled_from([2, 200]), new=st.integers(0, 3))
def test_rows_are_found_again(slices: list[tuple[int, int]], seed: int, kinds: int, new: int) -> None:
    random = np.random.default_rng(seed)
    source = random.integers(0, kinds, (40, 2, 3)).astype(np.uint8)
    rows = np.concatenate(
        [source[:0], *(source[at : at + n] for at, n in slices), random.integers(0, 9, (new, 2, 3)).astype(np.uint8)]
    )
    copies = find_copies(rows, source)
    assert np.array_equal(copies.rows(source), rows)
    assert sum(count for start, count in copies.parts.tolist() if start < 0) == len(copies.rest)
    if kinds > 2:  # rows are distinct but for accidents, so each slice is one part
        assert len(copies.rest) <= new
        assert len(copies.parts) <= len(slices) + new or not len(rows)


def test_rows_of_another_kind_are_kept_as_they_are() -> None:
    source = np.arange(24, dtype=np.uint8).reshape(6, 2, 2)
    for rows in (source.astype(np.uint16), source[:, :1], source[:0], np.empty((3, 0, 0), np.uint8)):
        copies = find_copies(rows, source)
        assert copies.rest.dtype == rows.dtype
        assert np.array_equal(copies.rows(source), rows)


def test_parts_that_do_not_fit_are_refused() -> None:
    source = np.zeros((4, 1, 1), np.uint8)
    for parts, rest in (([(3, 2)], 0), ([(-1, 2)], 1), ([(0, 1)], 1), ([(0, -1)], 0)):
        with pytest.raises(ValueError, match="rows"):
            Copies(np.array(parts, np.int64), np.zeros((rest, 1, 1), np.uint8)).rows(source)


def test_many_alike_take_no_longer() -> None:
    source = np.zeros((20_000, 2, 2), np.uint8)
    copies = find_copies(source[:15_000], source)
    assert copies.parts.tolist() == [[0, 15_000]]
    assert CANDIDATES < 100


@promise
@given(one=st.lists(st.integers(0, 1), max_size=200), more=st.lists(st.integers(0, 1), max_size=3), cut=st.integers(0, 200))
def test_common_prefix(one: list[int], more: list[int], cut: int) -> None:
    other = one[:cut] + more
    slow = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert common_prefix(np.array(one), np.array(other)) == slow

"""Nested state that comes back from disk as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints import same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t1x.campaign.state_tree import load_tree, save_tree, snapshot

TORCH = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.bool, torch.float8_e4m3fn,
]  # fmt: skip
NUMPY = [
    np.uint8,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint16,
    np.uint32,
    np.uint64,
    np.bool_,
    np.float16,
    np.float32,
    np.float64,
]

shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def arrays(draw: Any) -> np.ndarray:
    """Any bits of any type, NaNs with payloads among them."""
    kind, shape = np.dtype(draw(st.sampled_from(NUMPY))), draw(shapes)
    size = kind.itemsize * int(np.prod(shape))
    raw = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    return (raw % 2 if kind.kind == "b" else raw).view(kind).reshape(shape)


@st.composite
def tensors(draw: Any) -> torch.Tensor:
    kind, shape = draw(st.sampled_from(TORCH)), draw(shapes)
    size = torch.empty(0, dtype=kind).element_size() * int(np.prod(shape))
    raw = torch.tensor(list(draw(st.binary(min_size=size, max_size=size))), dtype=torch.uint8)
    return (raw % 2 if kind is torch.bool else raw).view(kind).reshape(shape)


plain = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | st.text()
scalars = arrays().filter(lambda array: array.size).map(lambda array: array.reshape(-1)[0])
keys = st.text(max_size=3) | st.integers(-5, 5) | st.sampled_from(["$tensor", "$dict", "$"])
trees = st.recursive(
    plain | arrays() | tensors() | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees)
def test_every_tree_comes_back_to_the_bit_and_with_its_types(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    folder = tmp_path_factory.mktemp("tree")
    save_tree(folder, tree)
    assert same(load_tree(folder), tree)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees)
def test_a_snapshot_is_the_same(tree: Any) -> None:
    assert same(snapshot(tree), tree)


def test_a_snapshot_is_not_reached_by_what_is_done_later() -> None:
    tensor, array = torch.zeros(4, requires_grad=True), np.zeros(2)
    tree = {"views": [tensor[:2], (tensor[1:], {"array": array})]}
    copied = snapshot(tree)
    with torch.no_grad():
        tensor += 1
    array += 1
    tree["views"].append(3)
    assert same(copied, {"views": [torch.zeros(2), (torch.zeros(3), {"array": np.zeros(2)})]})


def test_tensors_that_share_memory_come_back_apart(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    save_tree(tmp_path, [base, base, base.t(), base[0]])
    first, second, turned, row = load_tree(tmp_path)
    assert torch.equal(turned, base.t())
    assert torch.equal(row, base[0])
    first.zero_()
    assert torch.equal(second, base)


def test_what_is_read_can_be_changed_and_its_file_removed(tmp_path: Path) -> None:
    save_tree(tmp_path, {"a": torch.ones(1000), "b": np.ones(1000)})
    tree = load_tree(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.write_bytes(b"")
    tree["a"] += 1
    tree["b"] += 1
    assert float(tree["a"].sum() + tree["b"].sum()) == 4000


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array(["a"]), np.array([object()]), {(1, 2): 3}])
def test_anything_else_is_refused_with_its_place(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match=r"state\['optimizer'\]\[1\] is a"):
        save_tree(tmp_path, {"optimizer": [0, value]})

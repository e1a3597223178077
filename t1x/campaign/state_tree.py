"""Nested state on disk: `tree.json` for its shape and plain values, `tensors.safetensors` for its arrays.

Invariant: what is read back equals what was saved, to the bit and with its types. Tensors that share memory come back apart, on
the CPU.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

TREE, TENSORS = "tree.json", "tensors.safetensors"
MARK = "$"
"""Begins the one key of an object that stands for something else than a plain dict."""


def snapshot(tree: Any) -> Any:
    """A copy that nothing done to the original reaches, on the CPU."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().to("cpu", copy=True).contiguous()
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {key: snapshot(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(snapshot(value) for value in tree)
    return tree


def save_tree(folder: Path, tree: Any) -> None:
    """Writes nested dicts (keys: str or int), lists and tuples of tensors, NumPy arrays and scalars, str, int, float, bool and None
    into a folder that is there. Raises `TypeError` naming the place of anything else."""
    tensors: dict[str, torch.Tensor] = {}
    content = json.dumps(_packed(tree, tensors, ""), indent=1)
    (folder / TREE).write_text(content + "\n", encoding="utf-8")
    save_file(tensors, folder / TENSORS)


def load_tree(folder: Path) -> Any:
    """What `save_tree` wrote."""
    content = json.loads((folder / TREE).read_text(encoding="utf-8"))
    return _unpacked(content, load_file(folder / TENSORS))


def _packed(value: Any, tensors: dict[str, torch.Tensor], place: str) -> Any:
    if isinstance(value, np.generic):
        return {f"{MARK}scalar": _kept(_tensor(np.array(value), place), tensors)}
    if value is None or isinstance(value, str | int | float):  # a bool is an int
        return value
    if isinstance(value, torch.Tensor):
        return {f"{MARK}tensor": _kept(value.detach().to("cpu", copy=True).contiguous(), tensors)}
    if isinstance(value, np.ndarray):
        return {f"{MARK}array": _kept(_tensor(np.array(value, order="C"), place), tensors)}
    if isinstance(value, list):
        return [_packed(child, tensors, f"{place}[{index}]") for index, child in enumerate(value)]
    if type(value) is tuple:
        return {f"{MARK}tuple": [_packed(child, tensors, f"{place}[{index}]") for index, child in enumerate(value)]}
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        packed = {key: _packed(child, tensors, f"{place}[{key!r}]") for key, child in value.items()}
        plain = all(isinstance(key, str) and not key.startswith(MARK) for key in packed)
        return packed if plain else {f"{MARK}dict": [[key, child] for key, child in packed.items()]}
    raise TypeError(f"state{place} is a {type(value).__name__}, which can't be kept")


def _tensor(array: np.ndarray, place: str) -> torch.Tensor:
    try:
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        raise TypeError(f"state{place} is an array of {array.dtype}, which can't be kept") from None


def _kept(tensor: torch.Tensor, tensors: dict[str, torch.Tensor]) -> str:
    name = str(len(tensors))
    tensors[name] = tensor
    return name


def _unpacked(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpacked(child, tensors) for child in value]
    if not isinstance(value, dict):
        return value
    content: Any
    kind, content = next(iter(value.items()), ("", None))
    match kind:
        case "$tensor":
            return tensors[content].clone()
        case "$array":
            return tensors[content].numpy().copy()
        case "$scalar":
            return tensors[content].numpy()[()]
        case "$tuple":
            return tuple(_unpacked(child, tensors) for child in content)
        case "$dict":
            return {key: _unpacked(child, tensors) for key, child in content}
    return {key: _unpacked(child, tensors) for key, child in value.items()}

"""Tensors that are sharded over ranks (FSDP2), whole ones and back. Every rank must take part; plain tensors have nothing to be
put together."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn


def own(tensor: Tensor) -> Tensor:
    """This rank's part, sharing memory."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def whole(tensor: Tensor) -> Tensor:
    """All of it, put together; a plain one as it is."""
    full: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full


def assign(parameter: nn.Parameter, value: Tensor) -> None:
    """Writes a whole tensor into a parameter."""
    parameter.copy_(_as(value, parameter))


def whole_copy(tree: Any) -> Any:
    """Nested dicts and lists with each tensor a whole copy."""
    if isinstance(tree, dict):
        return {key: whole_copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [whole_copy(value) for value in tree]
    return whole(tree).clone() if isinstance(tree, Tensor) else tree


def sharded_state(state: dict[str, Any], parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """A torch optimizer's whole `state_dict`, with what is of a parameter's shape sharded as it is; in the optimizer's order."""

    def spread(values: dict[str, Tensor], parameter: nn.Parameter) -> dict[str, Tensor]:
        return {name: _as(value, parameter) if value.shape == parameter.shape else value for name, value in values.items()}

    return {**state, "state": {index: spread(values, parameters[index]) for index, values in state["state"].items()}}


def _as(value: Tensor, parameter: Any) -> Tensor:
    if not hasattr(parameter, "placements"):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, parameter.device_mesh, parameter.placements)

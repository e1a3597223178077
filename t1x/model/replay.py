"""The routing record that a replayed pass consumes.

Invariant: every layer takes its rows once in a pass, all of them; anything else raises.
"""

import torch
from torch import Tensor


class RoutingReplay:
    """One pass over a record of shape [*shape of the token ids, layers, k]."""

    def __init__(self, record: Tensor, *, shape: tuple[int, ...], layers: int, k: int, num_experts: int) -> None:
        """Raises `ValueError` where the record isn't [*shape, layers, k] integers, or a row holds an expert twice or one out of
        range."""
        if record.shape != (*shape, layers, k) or record.is_floating_point():
            raise ValueError(
                f"routing must be integers of shape {(*shape, layers, k)} for token_ids of shape {shape}, "
                f"got {record.dtype} {tuple(record.shape)}"
            )
        record = record.long()
        _refuse("is not an expert", (record < 0) | (record >= num_experts), record, num_experts)
        ordered = record.sort(-1).values
        _refuse("holds an expert twice", ordered[..., 1:] == ordered[..., :-1], record, num_experts)
        self._rows = record.flatten(0, -3).unbind(1)
        self._taken = [False] * layers

    def take(self, layer: int, rows: int) -> Tensor:
        """The experts of one layer, [rows, k]."""
        if self._taken[layer]:
            raise RuntimeError(f"routing replay: layer {layer} consumed its rows twice in one pass")
        if len(self._rows[layer]) != rows:
            raise RuntimeError(f"routing replay: layer {layer} asked for {rows} rows, the record has {len(self._rows[layer])}")
        self._taken[layer] = True
        return self._rows[layer]

    def finish(self) -> None:
        """Raises unless every layer consumed its rows."""
        left = [layer for layer, taken in enumerate(self._taken) if not taken]
        if left:
            raise RuntimeError(f"routing replay: layers {left} consumed no rows")


def _refuse(what: str, bad: Tensor, record: Tensor, num_experts: int) -> None:
    if bad.any():
        place = torch.nonzero(bad.any(-1))[0].tolist()
        named = ", ".join(f"{name} {index}" for name, index in zip(("sequence", "row", "layer")[-len(place) :], place, strict=True))
        raise ValueError(f"routing record of {named} {what}: {record[tuple(place)].tolist()} of {num_experts} experts")

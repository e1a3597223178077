"""Rollout routing replay (report, section 4.3): a pass whose experts are those of a record.

Invariants:
- a pass goes through the record as it was given, whatever the caller does to it later;
- a pass consumes every recorded row once in its forward pass and, where gradients flow, once in its backward pass: all else raises;
- a recomputation of activations gets the rows of its own forward pass, whatever other passes are in flight, and what the backward
  pass goes through is compared with them.
"""

import math
from collections import deque
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from t1x.model.replayable_router import ChosenBy, ReplayableRouter, Source
from t1x.model.router import RouterMode


class Place(NamedTuple):
    """Some rows of a record."""

    layer: int
    experts: Tensor
    """[rows, k] int64"""


class RoutingReplay:
    """One pass of a network over a record: `with replay:` around the forward pass, `replay.finish()` after the backward pass. Other
    passes may run in between."""

    def __init__(self, network: nn.Module, record: Tensor, mode: RouterMode = RouterMode.REPLAY_WITH_GRAD) -> None:
        """`record` integers [*shape of the token ids, layers, k], its layers in the order of the network's routers; rows of padding
        hold any k distinct experts. Raises `ValueError` for another shape or type; what rows hold isn't looked at in every pass
        (`Batch.require_records` looks once). `REPLAY_NO_GRAD` computes without gradient whatever the caller's mode."""
        assert mode is not RouterMode.FREE, "a free pass replays nothing"
        routers = [module for module in network.modules() if isinstance(module, ReplayableRouter)]
        layout = len(routers), *{router.k for router in routers}
        if record.ndim < 3 or record.shape[-2:] != layout or record.is_floating_point():
            raise ValueError(
                f"a routing record of this network is integers of shape [tokens, layers, k] = "
                f"[tokens, {', '.join(map(str, layout))}], got {record.dtype} {list(record.shape)}"
            )
        self._mode = mode
        # copied, since a caller may fill its buffer anew, and converted once: eight bytes an expert, as what the pass returns
        rows = record.flatten(0, -3).transpose(0, 1)
        self._experts = rows.to(torch.int64, copy=True, memory_format=torch.contiguous_format).unbind()
        self._rows = math.prod(record.shape[:-2])
        self._choosing: ChosenBy | None = None
        self._layers = {router: layer for layer, router in enumerate(routers)}
        self._forward, self._backward = [0] * len(routers), [0] * len(routers)
        """How many rows each layer has consumed: the cursors."""
        self._with_gradient = [0] * len(routers)
        """How many of them the backward pass must consume."""
        self._differs = set[int]()
        """Layers whose backward pass went through other experts."""

    def __enter__(self) -> None:
        if self._choosing is not None:
            raise RuntimeError("routing replay: its pass is running already; another pass needs a RoutingReplay of its own")
        self._choosing, self._grad_enabled = ChosenBy(self), torch.is_grad_enabled()
        self._choosing.__enter__()
        torch.set_grad_enabled(self._grad_enabled and self._mode is RouterMode.REPLAY_WITH_GRAD)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._choosing is not None, "entered before"
        torch.set_grad_enabled(self._grad_enabled)
        self._choosing.__exit__()
        self._choosing = None  # it holds this pass
        if error is None:
            self._require_forward()

    def finish(self) -> None:
        """Raises `RuntimeError` unless both cursors are where they must be and both passes went through the same experts."""
        self._require_forward()
        _require("backward", self._backward, self._with_gradient)
        if self._differs:
            raise RuntimeError(
                f"routing replay: layers {sorted(self._differs)} were recomputed with experts that aren't those of the record"
            )

    def choose(self, router: ReplayableRouter, logits: Tensor) -> tuple[Tensor, Tensor]:
        return self.replayed(self.advance(router, logits), logits)

    def twice(self) -> tuple[Source, Source]:
        due: deque[Place] = deque()
        return _First(self, due), _Again(self, due)

    def advance(self, router: ReplayableRouter, logits: Tensor) -> Place:
        """Moves the forward cursor over the next tokens of a router's layer."""
        layer, rows = self.layer(router), len(logits)
        start, end = self._forward[layer], self._rows
        if start + rows > end:
            raise RuntimeError(f"routing replay: layer {layer} asked for {rows} rows, {end - start} of {end} were left to consume")
        self._forward[layer] += rows
        place = Place(layer, self._experts[layer][start : start + rows])
        if logits.requires_grad and torch.is_grad_enabled():
            self._with_gradient[layer] += rows
        return place

    def went_back(self, place: Place, chosen: Tensor) -> None:
        """The backward pass has gone through these experts: moves its cursor."""
        layer, rows = place.layer, len(place.experts)
        if self._backward[layer] + rows > self._with_gradient[layer]:
            raise RuntimeError(f"routing replay: layer {layer} consumed its rows twice in the backward pass")
        self._backward[layer] += rows
        if not torch.equal(chosen, place.experts):  # free where it's the same memory, as it should be
            self._differs.add(layer)

    def layer(self, router: ReplayableRouter) -> int:
        """Which layer's router it is."""
        if router not in self._layers:
            raise RuntimeError("routing replay: a router of another network asked for experts")
        return self._layers[router]

    def replayed(self, place: Place, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The logits, bound to tell of their backward pass if they have one, and a place's experts."""
        if logits.requires_grad and torch.is_grad_enabled():
            logits = _Witness.apply(logits, place.experts, self, place)
        return logits, place.experts

    def _require_forward(self) -> None:
        _require("forward", self._forward, [self._rows] * len(self._forward))


def _require(which: str, cursor: list[int], due: list[int]) -> None:
    short = [f"{has} of {end} in layer {layer}" for layer, (has, end) in enumerate(zip(cursor, due, strict=True)) if has < end]
    if short:
        raise RuntimeError(f"routing replay: the {which} pass consumed too few rows, {', '.join(short)}")


class _Witness(torch.autograd.Function):
    """The logits as they are. Its backward pass tells the replay which experts it has gone through: what it saved is what a
    recomputation chose, where there was one."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, chosen: Tensor, replay: RoutingReplay, place: Place) -> Tensor:
        ctx.save_for_backward(chosen)
        ctx.replay, ctx.place = replay, place
        return logits.view_as(logits)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        ctx.replay.went_back(ctx.place, *ctx.saved_tensors)
        return grad, None, None, None


class _First:
    """Chooses in a part of a pass that is computed twice, and notes the places."""

    def __init__(self, replay: RoutingReplay, due: deque[Place]) -> None:
        self._replay, self._due = replay, due

    def choose(self, router: ReplayableRouter, logits: Tensor) -> tuple[Tensor, Tensor]:
        self._due.append(self._replay.advance(router, logits))
        return self._replay.replayed(self._due[-1], logits)

    def twice(self) -> tuple[Source, Source]:
        return self._replay.twice()


class _Again:
    """Chooses in its recomputation: the same places in the same order."""

    def __init__(self, replay: RoutingReplay, due: deque[Place]) -> None:
        self._replay, self._due = replay, due

    def choose(self, router: ReplayableRouter, logits: Tensor) -> tuple[Tensor, Tensor]:
        layer, rows = self._replay.layer(router), len(logits)
        if not self._due:
            raise RuntimeError(f"routing replay: layer {layer} was recomputed twice in one pass")
        due = self._due.popleft()
        if (due.layer, len(due.experts)) != (layer, rows):
            raise RuntimeError(
                f"routing replay: a recomputation asked for {rows} rows of layer {layer}, due were {len(due.experts)} of layer "
                f"{due.layer}"
            )
        return self._replay.replayed(due, logits)

    def twice(self) -> tuple[Source, Source]:
        return self, self

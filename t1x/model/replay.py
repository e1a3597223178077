"""Rollout routing replay (report, section 4.3): the experts of a pass are those of a record, in any network whose routers are
wrapped.

Invariants:
- a pass consumes every recorded row once, and once more where it recomputes activations for its backward pass; all else raises;
- a recomputation gets the rows that it consumed the first time, whatever other passes are in flight.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from t1x.model.router import RouterMode


class Choice(NamedTuple):
    """What a router says of N tokens, in the order in which transformers' routers say it."""

    logits: Tensor
    """[N, E] float32: the live ones, in a replay too."""
    weights: Tensor
    """[N, k], in the type of the tokens' hidden states."""
    experts: Tensor
    """[N, k] int64, in the router's slot order (by weight, falling; the record's order in a replay)."""


Due = deque[tuple[int, int, int]]
"""Layer, first row and number of rows of what is to be taken again. A backward cursor stands at its head."""


class ReplayableRouter(nn.Module):
    """A router of any make. Within a replay it takes the experts from the record, elsewhere those of the k largest logits. Their
    weights come from the live logits either way (Eq. 12): softmax over the chosen where they are normalised, the share of the full
    softmax otherwise."""

    def __init__(self, router: nn.Module, k: int, normalize: bool) -> None:
        """`router` makes logits [N, E] of hidden states [N, D], or a tuple that begins with them."""
        super().__init__()
        self.wrapped, self.k, self.normalize = router, k, normalize

    def forward(self, x: Tensor) -> Choice:
        """x [N, D]"""
        said = self.wrapped(x)
        logits = (said[0] if isinstance(said, tuple) else said).float()
        source = _source.get()
        chosen = logits.topk(self.k).indices if source is None else source.take(self, len(logits))
        weights = logits.gather(1, chosen).softmax(-1) if self.normalize else logits.softmax(-1).gather(1, chosen)
        return Choice(logits, weights.to(x.dtype), chosen)


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
        self._mode, self._rows = mode, record.flatten(0, -3)
        self._layers = {router: layer for layer, router in enumerate(routers)}
        self._forward = [0] * len(routers)
        """How many rows each layer consumed in the forward pass."""
        self._due: list[Due] = []
        """What each recomputed part has still to consume in the backward pass."""

    def __enter__(self) -> None:
        self._before, self._grad_enabled = _source.set(_Source(self, self._take)), torch.is_grad_enabled()
        torch.set_grad_enabled(self._grad_enabled and self._mode is RouterMode.REPLAY_WITH_GRAD)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        torch.set_grad_enabled(self._grad_enabled)
        _source.reset(self._before)
        if error is None:
            self._require_forward()

    def finish(self) -> None:
        """Raises `RuntimeError` unless every row was consumed, and once more where it was to be."""
        self._require_forward()
        if waiting := sorted({layer for due in self._due for layer, _, _ in due}):
            raise RuntimeError(f"routing replay: layers {waiting} weren't recomputed, the pass had no backward pass of its own")

    def layer(self, router: ReplayableRouter) -> int:
        """Which layer's router it is."""
        if router not in self._layers:
            raise RuntimeError("routing replay: a router of another network asked for experts")
        return self._layers[router]

    def advance(self, layer: int, rows: int) -> int:
        """Moves the forward cursor of a layer; where it stood before."""
        start, end = self._forward[layer], len(self._rows)
        if start + rows > end:
            raise RuntimeError(f"routing replay: layer {layer} asked for {rows} rows, {end - start} of {end} were left to consume")
        self._forward[layer] += rows
        return start

    def rows(self, layer: int, start: int, rows: int) -> Tensor:
        """[rows, k] int64"""
        return self._rows[start : start + rows, layer].long()

    def part(self) -> "_Part":
        """A part of the pass that is to be computed twice."""
        part = _Part(self)
        self._due.append(part.due)
        return part

    def _take(self, router: ReplayableRouter, rows: int) -> Tensor:
        layer = self.layer(router)
        return self.rows(layer, self.advance(layer, rows), rows)

    def _require_forward(self) -> None:
        end = len(self._rows)
        if short := [f"{consumed} in layer {layer}" for layer, consumed in enumerate(self._forward) if consumed < end]:
            raise RuntimeError(f"routing replay: of {end} rows the pass consumed only {', '.join(short)}")


class _Part:
    """What is computed twice of a pass, as one: it takes again what it took the first time, in the same order."""

    def __init__(self, replay: RoutingReplay) -> None:
        self.replay = replay
        self.due: Due = deque()

    def first(self, router: ReplayableRouter, rows: int) -> Tensor:
        layer = self.replay.layer(router)
        self.due.append((layer, self.replay.advance(layer, rows), rows))
        return self.replay.rows(*self.due[-1])

    def again(self, router: ReplayableRouter, rows: int) -> Tensor:
        layer = self.replay.layer(router)
        if not self.due:
            raise RuntimeError(f"routing replay: layer {layer} was recomputed twice in one pass")
        if (self.due[0][0], self.due[0][2]) != (layer, rows):
            raise RuntimeError(
                f"routing replay: layer {layer} asked for {rows} rows in a recomputation, where layer {self.due[0][0]} and "
                f"{self.due[0][2]} rows are due"
            )
        return self.replay.rows(*self.due.popleft())


class _Source(NamedTuple):
    """Where routers take experts from."""

    replay: RoutingReplay
    take: Callable[[ReplayableRouter, int], Tensor]


class _Within:
    """Routers take experts from this source while it is entered, and choose freely where there is none."""

    def __init__(self, source: _Source | None) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._before = _source.set(self._source)

    def __exit__(self, *_: object) -> None:
        _source.reset(self._before)


_source: ContextVar[_Source | None] = ContextVar("routing replay", default=None)


def recomputation() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """`context_fn` of `torch.utils.checkpoint.checkpoint` (non-reentrant): what is recomputed takes the rows that it takes now, in
    whichever order and thread backward passes run."""
    source = _source.get()
    if source is None:
        return nullcontext(), _Within(None)
    part = source.replay.part()
    return _Within(_Source(part.replay, part.first)), _Within(_Source(part.replay, part.again))

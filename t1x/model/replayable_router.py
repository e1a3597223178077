"""Routers of any make, wrapped so that the experts may come from elsewhere. A network whose routers are wrapped needs no other code
for replay."""

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from torch import Tensor, nn


class Choice(NamedTuple):
    """What a router says of N tokens, in the order in which transformers' routers say it."""

    logits: Tensor
    """[N, E] float32: the live ones, in a replay too."""
    weights: Tensor
    """[N, k], in the type of the tokens' hidden states."""
    experts: Tensor
    """[N, k] int64, in the router's slot order (by weight, falling; the record's order in a replay)."""


class Source(Protocol):
    """What chooses experts in a router's place."""

    def choose(self, router: "ReplayableRouter", logits: Tensor) -> tuple[Tensor, Tensor]:
        """The logits to go on with, of the same values, and the experts [N, k] int64 of its next N tokens."""

    def twice(self) -> tuple["Source", "Source"]:
        """What chooses in a part that is computed twice, the first time and in the recomputation."""


class ReplayableRouter(nn.Module):
    """A router that lets a source choose where there is one, and chooses the k largest logits elsewhere. The weights come from the
    live logits either way (Eq. 12): softmax over the chosen where they are normalised, the share of the full softmax otherwise."""

    def __init__(self, router: nn.Module, k: int, normalize: bool) -> None:
        """`router` makes logits [N, E] of hidden states [N, D], or a tuple that begins with them."""
        super().__init__()
        self.wrapped, self.k, self.normalize = router, k, normalize

    def forward(self, x: Tensor) -> Choice:
        """x [N, D]"""
        said = self.wrapped(x)
        logits = (said[0] if isinstance(said, tuple) else said).float()
        source = _source.get()
        if source is None:
            chosen = logits.topk(self.k).indices
        else:
            logits, chosen = source.choose(self, logits)
        weights = logits.gather(1, chosen).softmax(-1) if self.normalize else logits.softmax(-1).gather(1, chosen)
        return Choice(logits, weights.to(x.dtype), chosen)


class ChosenBy:
    """`with ChosenBy(source):` routers that run in it let the source choose; with None they choose freely."""

    def __init__(self, source: Source | None) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._before = _source.set(self._source)

    def __exit__(self, *_: object) -> None:
        _source.reset(self._before)


_source: ContextVar[Source | None] = ContextVar("source of experts", default=None)


def recomputation() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """`context_fn` of `torch.utils.checkpoint.checkpoint` (non-reentrant): the recomputation asks the source that there is now, in
    whichever order and thread backward passes run."""
    source = _source.get()
    if source is None:
        return nullcontext(), ChosenBy(None)
    first, again = source.twice()
    return ChosenBy(first), ChosenBy(again)

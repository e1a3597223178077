"""Routing records: what a turn's capture must be, which row may be put in, and what padding holds.

Invariants:
- a record that isn't exactly what the model's layout says is refused; nothing is filled in silently;
- a row is looked at once, when it was captured: what a turn costs doesn't depend on the turns before it;
- a row is substituted only where it predicts no loss token (Eq. 14).
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts, RoutingLayout
from t1x.trajectory.invariants import cached_rows, rows_of_a_turn
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import RoutingRecordError

BLOCK = 1 << 17
"""Experts that are compared at a time, so that they stay in the processor's cache."""
UNLIKELY = 64
"""Rows of one turn from which on a choice that never changes is taken for a broken capture. In fewer of them a router may well make
it: one that takes the same expert nine times of ten does so 64 times in a row once in 850. And what isn't recorded is missing in
every turn, of which the first ones, with the task in their prompts, are longer."""


def check_record(turn: Turn, layout: RoutingLayout | None, earlier: Experts | None = None) -> None:
    """Raises `RoutingRecordError` unless a turn's capture is a record of `layout`: reaching from `routing_start` to the last id but
    one, of k distinct experts of the layer a row, in the layout's type. Without a layout it has neither layers nor experts.

    `earlier` [n, layers, k] are rows that earlier turns captured for this prompt, from `routing_start` on: those that are served
    from a cache must equal them (invariant 2). Rows that were computed again may differ.

    With k > 1 a layer that wasn't recorded (all zeros) repeats an expert. Other broken captures are a choice that could be the
    router's: expert 0 with k = 1, the top k of zeros (experts 0 to k - 1), the same experts everywhere. In `UNLIKELY` or more rows
    of one turn these are refused where there are more than k experts: a layer of nothing but the first k, and layers of nothing but
    one choice each."""
    done = turn.completion
    _check_extent(turn, layout)
    served = min(max(0, done.cached_tokens - done.routing_start), len(done.routing))
    known = 0 if earlier is None else min(served, len(earlier))
    if earlier is not None and known:
        _check_served(turn, done.routing[:known], earlier[:known])
    if layout is not None:
        _check_experts(turn, layout, known)


def record_flaw(rows: Experts, layout: RoutingLayout, first: int = 0) -> str:
    """What keeps rows [n, layers, k] of the positions from `first` on from being replayed by a model of this layout, "" where
    nothing does."""
    if rows.shape[1:] != (layout.layers, layout.k):
        return f"routing rows of [layers, k] = {list(rows.shape[1:])}, the model has {[layout.layers, layout.k]}"
    if layout.experts <= np.iinfo(rows.dtype).max and rows.size and rows.max() >= layout.experts:
        row, layer, _ = np.argwhere(rows >= layout.experts)[0]
        return f"position {first + row}, layer {layer}: {rows[row, layer].tolist()} of {layout.experts} experts"
    if (found := repeated_expert(rows)) is not None:
        row, layer = found
        zeros = "; nothing was recorded for that layer" if not rows[row, layer].any() else ""
        return f"position {first + row}, layer {layer}: experts {rows[row, layer].tolist()} aren't distinct{zeros}"
    return ""


def substitute(rows: Experts, predicts_loss: bool) -> Experts:
    """The row [1, layers, k] behind `rows` [n, layers, k], where no turn captured it: R[n] <- R[n-1] (Eq. 14). Raises
    `RoutingRecordError` where it predicts a loss token, or no row stands before it."""
    if predicts_loss or not len(rows):
        why = "it predicts a loss token" if predicts_loss else "no row stands before it"
        raise RoutingRecordError(
            f"position {len(rows)} has a row of no turn's capture, and {why}: none may be put in its place (Eq. 14)"
        )
    return rows[-1:]


def padding_rows(layout: RoutingLayout, first: int, rows: int) -> Experts:
    """[rows, layers, k] for padding positions from `first` on: k distinct experts each, the next k of the layer in turn, so that n
    of them load experts equally (their loads differ by at most 1)."""
    starts = np.arange(first, first + rows, dtype=np.int64) * layout.k
    experts = (starts[:, None] + np.arange(layout.k)) % layout.experts
    return np.repeat(experts[:, None].astype(layout.dtype), layout.layers, axis=1)


def repeated_expert(rows: Experts) -> tuple[int, int] | None:
    """(row, layer) of [n, layers, k] in which an expert stands twice; None where there is none.

    All slots are compared with those `shift` behind them in one stretch of memory, and a mask keeps the pairs of one row and layer:
    eight times faster than slot by slot, ten times than sorting."""
    _, layers, k = rows.shape
    flat = rows.reshape(-1)
    step = max(1, BLOCK // max(1, k)) * k
    for start in range(0, flat.size if k > 1 else 0, step):
        block = flat[start : start + step]
        for shift in range(1, k):
            same = block[shift:] == block[:-shift]
            same &= _within(k, shift, step)[: len(same)]
            if same.any():
                at = (start + int(same.argmax())) // k
                return divmod(at, layers)
    return None


@lru_cache(maxsize=64)
def _within(k: int, shift: int, size: int) -> npt.NDArray[np.bool_]:
    """[size]: whether slot i and slot i + shift are of the same k."""
    return np.tile(np.arange(k) < k - shift, size // k)


def _check_extent(turn: Turn, layout: RoutingLayout | None) -> None:
    routing = turn.completion.routing
    if routing.ndim != 3:
        raise _refused(turn, f"its routing has the shape {routing.shape}, not [rows, layers, k]")
    expected = (0, 0) if layout is None else (layout.layers, layout.k)
    if routing.shape[1:] != expected:
        hint = "the engine and the model that is trained differ" if layout and routing.shape[1:] != (0, 0) else _absent(layout)
        raise _refused(turn, f"its routing is of [layers, k] = {list(routing.shape[1:])} where {list(expected)} is due; {hint}")
    if layout is not None and routing.dtype != layout.dtype:
        raise _refused(turn, f"its routing is of type {routing.dtype} where {layout.dtype} is due ({layout.experts} experts)")
    if flaw := rows_of_a_turn(turn):
        raise _refused(turn, f"{flaw}; {_absent(layout)}" if layout and not len(routing) else flaw)


def _check_served(turn: Turn, again: Experts, earlier: Experts) -> None:
    differs = cached_rows(again, earlier)
    if differs.any():
        row = int(differs.argmax())
        layer = int((again[row] != earlier[row]).any(axis=1).argmax())
        raise _refused(
            turn,
            f"position {turn.completion.routing_start + row}, layer {layer}: the cache served {again[row, layer].tolist()}, but "
            f"{earlier[row, layer].tolist()} were captured before; the cache isn't of this session's ids and policy version",
        )


def _check_experts(turn: Turn, layout: RoutingLayout, known: int) -> None:
    rows, first = turn.completion.routing[known:], turn.completion.routing_start + known
    if flaw := record_flaw(rows, layout, first):
        raise _refused(turn, flaw)
    if len(rows) < UNLIKELY or layout.experts == layout.k:
        return
    fixed = np.flatnonzero((rows[-1] == rows[0]).all(axis=1))  # few are left to look at as a whole
    fixed = fixed[(rows[:, fixed] == rows[0, fixed]).all(axis=(0, 2))]
    unused = fixed[(rows[0, fixed] == np.arange(layout.k)).all(axis=1)]
    if len(unused) or len(fixed) == layout.layers:
        layer = int(unused[0] if len(unused) else fixed[0])
        where = f"layer {layer}" if len(unused) else f"layer {layer}, as in every other"
        raise _refused(
            turn,
            f"positions {first} to {first + len(rows) - 1}, {where}: nothing but experts {rows[0, layer].tolist()}; they weren't "
            f"recorded, or the router has collapsed",
        )


def _absent(layout: RoutingLayout | None) -> str:
    if layout is None:
        return "the model has no experts, or nobody asked for them"
    return "let the engine return the routed experts"


def _refused(turn: Turn, what: str) -> RoutingRecordError:
    return RoutingRecordError(f"turn {turn.index}: {what}")

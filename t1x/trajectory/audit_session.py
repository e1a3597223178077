"""Which rows a session's turns captured, in the engine's positions, as the auditor sees it: nothing is copied when a turn comes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from t1x.model.routing_layout import Experts
from t1x.trajectory.records import Turn


@dataclass(frozen=True, slots=True)
class Again:
    """Rows of a turn for positions that turns before it captured too."""

    recomputed: int = 0
    differing: int = 0
    """Of the recomputed ones."""
    served_differently: int = 0
    """Rows from a cache that aren't those captured before (invariant 2)."""
    detail: str = ""
    """The first of these."""


class AuditedSession:
    """The rows of what the engine consumed last. A position has the row that was captured last."""

    def __init__(self) -> None:
        self._before: Turn | None = None
        self._pieces: list[tuple[int, Experts]] = []
        """(first position, rows), one behind the other."""

    def follow(self, turn: Turn) -> Again:
        """Goes on to a turn: rows behind what its prompt shares with the turn before are gone."""
        done = turn.completion
        self._cut(self._shared(turn))
        again = self._again(turn)
        self._cut(done.routing_start)
        self._pieces.append((done.routing_start, done.routing))
        self._before = turn
        return again

    def rows(self, start: int, stop: int) -> Experts | None:
        """[stop - start, layers, k]; None where no turn captured all of them."""
        parts: list[Any] = []
        missing = stop
        for first, piece in reversed(self._pieces):
            if missing <= start or first + len(piece) < missing:
                break
            if first < missing:
                parts.append(piece[max(0, start - first) : missing - first])
                missing = max(start, first)
        if missing > start or not parts:
            return None
        whole: Experts = parts[0] if len(parts) == 1 else np.concatenate(parts[::-1])
        return whole

    def _shared(self, turn: Turn) -> int:
        """How many ids the prompt has in common with the beginning of T of the turn before."""
        if self._before is None:
            return 0
        at = 0
        for part in (self._before.prompt_ids, self._before.completion.ids):
            here = turn.prompt_ids[at : at + len(part)]
            differs = here != part[: len(here)]
            if differs.any():
                return at + int(differs.argmax())
            at += len(here)
        return at

    def _cut(self, end: int) -> None:
        while self._pieces and self._pieces[-1][0] >= end:
            self._pieces.pop()
        if self._pieces:
            first, rows = self._pieces[-1]
            self._pieces[-1] = first, rows[: end - first]

    def _again(self, turn: Turn) -> Again:
        start, captured = turn.completion.routing_start, turn.completion.routing
        end = min(self._end, start + len(captured))
        if end <= start:
            return Again()
        earlier = self.rows(start, end)
        if earlier is None or earlier.shape[1:] != captured.shape[1:]:
            return Again()
        differs = (captured[: end - start] != earlier).any(axis=(1, 2))
        served = max(0, min(turn.completion.cached_tokens, end) - start)
        wrong, detail = int(np.count_nonzero(differs[:served])), ""
        if wrong:
            row = int(differs.argmax())
            layer = int((captured[row] != earlier[row]).any(axis=1).argmax())
            detail = (
                f"position {start + row} of the prompt, layer {layer}: {captured[row, layer].tolist()} was served, "
                f"{earlier[row, layer].tolist()} captured before"
            )
        return Again(len(differs) - served, int(np.count_nonzero(differs[served:])), wrong, detail)

    @property
    def _end(self) -> int:
        return self._pieces[-1][0] + len(self._pieces[-1][1]) if self._pieces else 0

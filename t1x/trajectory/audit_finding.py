"""What the auditor found, so that a reader can see it."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from t1x.trajectory.audit_rows import rows_detail
from t1x.trajectory.records import Trajectory, Turn

WORST = 20
"""Findings that are kept of an audit, however much was audited."""
BEFORE, AFTER = 3, 5
"""Ids that a finding shows before its place, and from it on."""


class Kind(StrEnum):
    """What differs, the worst first. All but the last are violations: a faithful stitcher leaves none."""

    MISSING = "missing"
    """Tokens that a turn sampled and no stream holds as loss, or loss positions that no turn sampled."""
    TOKEN = "token"
    """A loss position's id."""
    LOGPROB = "log-probability"
    """Of a loss position; or of context, which has none."""
    VERSION = "version"
    """The policy version of a loss position."""
    ROUTING = "routing"
    """The row that predicts a loss position."""
    CACHED = "cached row"
    """A row that a cache served isn't the one that was captured before (invariant 2)."""
    ROW = "row"
    """The row of a context position was captured for no such token, nor substituted as Eq. 14 has it (invariant 4)."""
    CONTEXT = "context"
    """Loss positions have another prefix than the engine consumed."""


SEVERITY = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of difference between a stream and one turn's capture, at its first position."""

    kind: Kind
    trial: str
    turn: int
    position: int
    """In the stream."""
    count: int
    """Positions of this turn that differ so."""
    stream_ids: tuple[int, ...]
    """Around the position, from at most `BEFORE` before it on, as the stream has them."""
    engine_ids: tuple[int, ...]
    """The same around the place that goes with it, as the engine consumed or sampled them."""
    engine_position: int
    """That place in the turn's prompt and completion."""
    detail: str = ""
    """What differs where it isn't the ids: the stream's value and the turn's."""

    def __str__(self) -> str:
        what = self.detail or f"the stream has {list(self.stream_ids)} around it, the engine had {list(self.engine_ids)}"
        return f"Trial {self.trial}, turn {self.turn}, {self.kind} at position {self.position} ({self.count} of the turn): {what}"


def worst(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """At most `WORST` of them, the worst first."""
    return tuple(sorted(findings, key=lambda found: (SEVERITY[found.kind], -found.count))[:WORST])


def engine_ids(turn: Turn, at: int) -> tuple[int, ...]:
    """Those of T_i around a place, as a finding shows them."""
    m = len(turn.prompt_ids)
    start, stop = max(0, at - BEFORE), at + AFTER
    parts = turn.prompt_ids[start:stop], turn.completion.ids[max(0, start - m) : max(0, stop - m)]
    return tuple(np.concatenate(parts).tolist())


def detail(kind: Kind, stream: Trajectory, place: int, turn: Turn, offset: int, versions: npt.NDArray[np.int64]) -> str:
    """The stream's value at a place, and the turn's of the sampled id that goes with it; empty where they are ids."""
    done = turn.completion
    if kind is Kind.LOGPROB:
        return f"the stream has {stream.logprobs[place]:.6g}, the turn {done.logprobs[offset]:.6g}"
    if kind is Kind.VERSION:
        return f"the stream has version {versions[place]}, the turn {done.version}"
    if kind is Kind.ROUTING:
        row = len(turn.prompt_ids) + offset - 1 - done.routing_start
        captured = done.routing[row] if 0 <= row < len(done.routing) else None
        return rows_detail(stream.routed_experts[place - 1] if place else None, captured)
    return ""

"""What the auditor found, so that a reader can see it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

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
    TEMPERATURE = "temperature"
    """A turn was sampled at another temperature than its stream has, which the trainer applies."""
    ROUTING = "routing"
    """The row that predicts a loss position."""
    CACHED = "cached row"
    """A row that a cache served isn't the one that was captured before (invariant 2)."""
    ROW = "row"
    """The row of a context position was captured for no such token, nor substituted as Eq. 14 has it (invariant 4)."""
    BOUNDARY = "boundary"
    """How a turn continues the turn before isn't what its stream says, or there is another number of boundaries than of turns."""
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
    """Positions of this turn, and of `later` ones, that differ so."""
    stream_ids: tuple[int, ...]
    """Around the position, from at most `BEFORE` before it on, as the stream has them."""
    engine_ids: tuple[int, ...]
    """The same around the place that goes with it, as the engine consumed or sampled them."""
    engine_position: int
    """That place in the turn's prompt and completion."""
    detail: str = ""
    """What differs where it isn't the ids: the stream's value and the turn's."""
    later: int = 0
    """Later turns whose prefix differs at the same position first."""
    stream_values: tuple[str, ...] = ()
    """What differs where it isn't the ids, beside each of `stream_ids`; "" for a position that has none. Empty where ids differ."""
    engine_values: tuple[str, ...] = ()
    """The same beside `engine_ids`, as this turn captured it."""

    def __str__(self) -> str:
        whose = f"the turn and {self.later} later one{'s' * (self.later > 1)}" if self.later else "the turn"
        what = self.detail or f"the stream has {list(self.stream_ids)} around it, the engine had {list(self.engine_ids)}"
        return f"Trial {self.trial}, turn {self.turn}, {self.kind} at position {self.position} ({self.count} of {whose}): {what}"


def gathered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those of one trial, where turns whose context differs at one position first are told by the first of them."""
    found: dict[object, Finding] = {}
    for each in findings:
        place = (each.position, each.stream_ids) if each.kind is Kind.CONTEXT else len(found)
        before = found.get(place)
        found[place] = each if before is None else replace(before, count=before.count + each.count, later=before.later + 1)
    return tuple(found.values())


def worst(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """At most `WORST` of them, the worst first."""
    return tuple(sorted(findings, key=lambda found: (SEVERITY[found.kind], -found.count))[:WORST])

"""Where turns stand in a stream, as far as what they sampled or consumed tells it."""

from collections.abc import Sequence

import numpy as np

from t1x.trajectory.audit_alignment import Span
from t1x.trajectory.audit_relation import goes_on_at
from t1x.trajectory.records import Boundary, Trajectory, Turn


def places(turns: Sequence[Turn], labels: Sequence[Boundary | None], spans: Sequence[Span | None], end: int) -> list[Span | None]:
    """The spans, with those of turns that sampled nothing where these can be told: such a turn stands where its prompt ends in its
    stream of `end` positions. At the end, or with all of the prompt where it's the stream's first. Behind an exact boundary it
    follows from where the turn before ends; else from where the next turn begins: what that one adds is what its prompt has behind
    what it repeats of this one. What can't be because of what stands around it is moved between them."""
    found = list(spans)

    def put(number: int, at: int) -> None:
        low = max((span[1] for span in found[:number] if span is not None), default=0)
        high = min((span[0] for span in found[number + 1 :] if span is not None), default=end)
        at = min(max(at, low), high)
        found[number] = at, at

    for number, turn in enumerate(turns):
        before = found[number - 1] if number else None
        if found[number] is not None:
            continue
        if number == len(turns) - 1:
            put(number, end)
        elif number == 0:
            put(number, len(turn.prompt_ids))
        elif before is not None and labels[number] is Boundary.EXACT:
            last = turns[number - 1]
            put(number, before[1] + len(turn.prompt_ids) - len(last.prompt_ids) - len(last.completion.ids))
    for number in reversed(range(len(turns) - 1)):
        behind = found[number + 1]
        after = turns[number + 1]
        if (
            found[number] is None
            and behind is not None
            and (at := goes_on_at(turns[number], after, labels[number + 1])) is not None
        ):
            put(number, behind[0] - len(after.prompt_ids) + at)
    return found


def follows(turns: Sequence[Turn], spans: Sequence[Span | None], stream: Trajectory) -> list[int | None]:
    """For each turn the position in its prompt from which on its stream has it; None where a turn sampled nothing or isn't there as
    it was sampled, or where other ids stand before it."""
    found: list[int | None] = []
    behind: int | None = None
    for turn, sampled in zip(turns, spans, strict=True):
        whole = sampled is not None and sampled[1] - sampled[0] == len(turn.completion.ids)
        span = sampled if whole else None
        at = None
        if span is not None and behind is not None:
            at = len(turn.prompt_ids) - (span[0] - behind)
            same = at >= 0 and np.array_equal(stream.token_ids[behind : span[0]], turn.prompt_ids[at:])
            at = at if same else None
        found.append(at)
        behind = None if span is None else span[1]
    return found

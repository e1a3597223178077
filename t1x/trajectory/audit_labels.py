"""What a stream says of its turns as a whole: their temperature, and how each continues the turn before."""

from collections.abc import Iterator, Sequence

import numpy as np

from t1x.trajectory.audit_finding import Kind
from t1x.trajectory.audit_relation import edge_flaw, retokenized_flaw
from t1x.trajectory.records import Boundary, Trajectory, Turn


def label_of(number: int, stream: Trajectory, *, first: bool) -> Boundary | None:
    """How the stream says that its turn `number` continues the turn before; None for the trial's first turn, which `first` streams
    begin with, and where the stream doesn't say."""
    at = number - first
    return stream.boundaries[at] if 0 <= at < len(stream.boundaries) else None


def wrong_labels(
    turns: Sequence[Turn], before: Turn | None, stream: Trajectory, follows: Sequence[int | None], droppable: int | None
) -> Iterator[tuple[Kind, Turn, str]]:
    """Of each label that a stream's turns contradict: its kind, the turn, and what is wrong. `before` is the turn before the
    stream, None where the trial begins with it. `follows` says of each turn from which position on the stream has its prompt, as
    far as that can be told; `droppable` how many ids of an answer an edge may drop, as far as it is known.

    A later stream begins with RESTART, which was announced, and no other turn is one. EXACT is a prompt that begins with all of the
    turn before. `audit_relation.py` says how far EDGE and RETOKENIZED are judged."""
    for number, (turn, follow) in enumerate(zip(turns, follows, strict=True)):
        if turn.temperature != stream.temperature:
            said = f"the stream has temperature {stream.temperature:g}, the turn was sampled at {turn.temperature:g}"
            yield Kind.TEMPERATURE, turn, said
        label = label_of(number, stream, first=before is None)
        last = turns[number - 1] if number else before
        if label is None or last is None:
            continue
        if number == 0:
            flaw = _opening_flaw(label, last, turn)
        elif label is Boundary.RESTART:
            flaw = "but the turn goes on with its stream"
        else:
            flaw = _flaw(label, last, turn, follow, droppable)
        if flaw:
            yield Kind.BOUNDARY, turn, f"{label}, {flaw}"


def _opening_flaw(label: Boundary, last: Turn, turn: Turn) -> str:
    if label is not Boundary.RESTART:
        return "but the turn begins a stream"
    if _continues(last, turn):
        return f"but its prompt begins with all of turn {last.index}"
    return "" if turn.restarted else "but nobody announced it"


def _flaw(label: Boundary, last: Turn, turn: Turn, follow: int | None, droppable: int | None) -> str:
    """Of a turn that goes on with its stream."""
    consumed = len(last.prompt_ids) + len(last.completion.ids)
    if _continues(last, turn) != (label is Boundary.EXACT):
        how = "doesn't begin" if label is Boundary.EXACT else "begins"
        return f"but its prompt {how} with all of turn {last.index}"
    if label is Boundary.EXACT:
        there = follow is None or follow == consumed
        return "" if there else f"but its stream goes on with id {follow} of the prompt, and not with {consumed}"
    if turn.restarted:
        return "but a restart was announced"
    flaw = edge_flaw(last, turn, follow) if label is Boundary.EDGE else retokenized_flaw(last, turn, follow, droppable)
    return f"but {flaw}" if flaw else ""


def _continues(before: Turn, turn: Turn) -> bool:
    """Eq. 6: T_i is a prefix of p_{i+1}."""
    m, n = len(before.prompt_ids), len(before.completion.ids)
    return np.array_equal(before.prompt_ids, turn.prompt_ids[:m]) and np.array_equal(
        before.completion.ids, turn.prompt_ids[m : m + n]
    )

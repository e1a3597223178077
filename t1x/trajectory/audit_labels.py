"""What a stream says of its turns as a whole: their temperature, and how each continues the turn before."""

from collections.abc import Iterator, Sequence

import numpy as np

from t1x.trajectory.audit_finding import Kind
from t1x.trajectory.records import Boundary, Trajectory, Turn


def label_of(number: int, stream: Trajectory, *, first: bool) -> Boundary | None:
    """How the stream says that its turn `number` continues the turn before; None for the trial's first turn, which `first` streams
    begin with, and where the stream doesn't say."""
    at = number - first
    return stream.boundaries[at] if 0 <= at < len(stream.boundaries) else None


def wrong_labels(turns: Sequence[Turn], before: Turn | None, stream: Trajectory) -> Iterator[tuple[Kind, Turn, str]]:
    """Of each label that a stream's turns contradict: its kind, the turn, and what is wrong. `before` is the
    turn before the stream, None where the trial begins with it.

    A later stream begins with RESTART, and no other turn is one. EXACT is a prompt that begins with all of the turn before. Whether
    another is EDGE or RETOKENIZED isn't judged: that depends on stop ids and texts."""
    for number, turn in enumerate(turns):
        if turn.temperature != stream.temperature:
            said = f"the stream has temperature {stream.temperature:g}, the turn was sampled at {turn.temperature:g}"
            yield Kind.TEMPERATURE, turn, said
        label = label_of(number, stream, first=before is None)
        last = turns[number - 1] if number else before
        if label is None or last is None:
            continue
        opens, goes_on = number == 0, _continues(last, turn)
        if opens != (label is Boundary.RESTART):
            yield Kind.BOUNDARY, turn, f"{label}, but the turn {'begins a stream' if opens else 'goes on with its stream'}"
        elif not opens and goes_on != (label is Boundary.EXACT):
            how = "begins" if goes_on else "doesn't begin"
            yield Kind.BOUNDARY, turn, f"{label}, but its prompt {how} with all of turn {last.index}"


def _continues(before: Turn, turn: Turn) -> bool:
    """Eq. 6: T_i is a prefix of p_{i+1}."""
    m, n = len(before.prompt_ids), len(before.completion.ids)
    return np.array_equal(before.prompt_ids, turn.prompt_ids[:m]) and np.array_equal(
        before.completion.ids, turn.prompt_ids[m : m + n]
    )

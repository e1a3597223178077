"""How a prompt p_{i+1} continues T_i = p_i ∥ a_i where it doesn't begin with it, as the auditor sees it: the definitions of Eq. 7
and 8 once more, judged by ids and by the rendered texts that turns keep, without a tokenizer. Nothing is taken for a flaw that
depends on the stitcher's bounds, unless they are told.

Unjudged remains what takes a tokenizer:
- whether ids that an edge drops at the end of an answer are stop ids or white space, but for those that the prompt itself shows as
  a visible character. Which id ends an answer is known where the engine says that it stopped there;
- whether a rendered answer has the text of the ids that were sampled. The text before it is compared;
- whether what an edge leaves out of p_i is what the template ends every prompt with.
- whether an answer that comes back without its end is an edge rather than the same text in other ids, where that end may begin
  within a character.
"""

from collections.abc import Iterator

import numpy as np

from t1x.text.prefix import common_ids
from t1x.text.tokenizer import EncodedText, Ids
from t1x.trajectory.records import Boundary, Turn


def edge_flaw(before: Turn, turn: Turn, follow: int | None) -> str:
    """Why the turn's prompt is no edge behind the turn before it (Eq. 7), "" where it may be one. `follow` is the position in the
    prompt from which on the stream has it, None where nobody can tell."""
    ends = list(_edges(before, turn))
    if not ends:
        return f"its prompt doesn't repeat turn {before.index} id by id"
    answer, due = before.completion.ids, set[int]()
    for begin, end in ends:
        dropped = answer[end - begin :]
        if said := _visible(dropped, turn):
            return f"its prompt lacks {said!r} of what turn {before.index} sampled"
        due |= _goes_on(turn, end, dropped, _stopped(before))
    return _other_place(follow, due)


def retokenized_flaw(before: Turn, turn: Turn, follow: int | None, droppable: int | None) -> str:
    """The same for a prompt that is to be the same text in other ids (Eq. 8). An edge is the stronger relation; `droppable` is
    how many ids it may drop of an answer, as far as that is known."""
    old, new, answer = before.rendered, turn.rendered, before.completion.ids
    if old is None or new is None or new.answer is None:
        return "no rendered texts tell that they agree"
    first, last = new.answer
    if new.encoded.text[:first] != old.encoded.text[:first]:
        return f"the text before its answer isn't that of turn {before.index}"
    end = new.encoded.id_at(last)
    if end is None:
        return f"one id stands for the end of the answer and for what follows it, at character {last}"
    for begin, same in _edges(before, turn):
        missing = len(answer) - (same - begin)
        if missing == 0 or (missing <= (droppable or 0) and (same == end or _parted(new.encoded, same))):
            return f"its prompt repeats turn {before.index} id by id, as an edge does"
    # The answer's stop ids aren't rendered. Without a tokenizer they may be the last id alone, or as many as the prompt repeats.
    due = _goes_on(turn, end, answer[-1:], _stopped(before)) | _goes_on(turn, end, answer, _stopped(before))
    return _other_place(follow, due if _stopped(before) else due | {end})  # where none is certain, none may be left out


def goes_on_at(before: Turn, turn: Turn, label: Boundary | None) -> int | None:
    """The position in the turn's prompt behind what it repeats of the turn before, which sampled nothing. None where nothing tells
    it."""
    at = None
    if (
        turn.rendered is not None
        and (answer := turn.rendered.answer) is not None
        and label in (Boundary.EDGE, Boundary.RETOKENIZED)
    ):
        at = turn.rendered.encoded.id_at(answer[label is Boundary.RETOKENIZED])
    if at is None and label in (Boundary.EXACT, Boundary.EDGE):
        return common_ids(before.prompt_ids, turn.prompt_ids)
    return at


def _edges(before: Turn, turn: Turn) -> Iterator[tuple[int, int]]:
    """[begin, end) of a_i's first ids in the prompt, for each reading as an edge. Where the prompt was rendered they stand at its
    last answer, and what they lack of it is white space that repeats dropped ids. Otherwise they reach at least to where p_i and
    p_{i+1} part."""
    prompt, answer = turn.prompt_ids, before.completion.ids
    part = common_ids(before.prompt_ids, prompt)
    if turn.rendered is not None and turn.rendered.answer is not None:
        encoded, (first, last) = turn.rendered.encoded, turn.rendered.answer
        begin = encoded.id_at(first)
        if begin is None or not 0 < begin <= part:
            return
        end = begin + common_ids(answer, prompt[begin:])
        dropped, behind = answer[end - begin :], int(np.searchsorted(encoded.starts, last))
        lacking = encoded.text[encoded.start(end) : last]
        if not len(dropped) or (end + _repeated(dropped, prompt[end:]) >= behind and not lacking.strip()):
            yield begin, end
        return
    first = max(1, part - len(answer))
    places = first + np.flatnonzero(prompt[first:part] == answer[0]) if len(answer) else np.empty(0, np.int64)
    for begin in [*places.tolist(), *([part] if part else [])]:
        end = begin + common_ids(answer, prompt[begin:])
        if end >= part:
            yield begin, end


def _goes_on(turn: Turn, end: int, dropped: Ids, stopped: bool) -> set[int]:
    """Positions in the prompt from which on a stream may have it: `end`, or behind what there repeats the dropped ids, or behind
    white space and the stop id that is the last of them."""
    rest = turn.prompt_ids[end:]
    again = _repeated(dropped, rest)
    at = np.flatnonzero(rest == dropped[-1])[:1] if len(dropped) else np.empty(0, np.int64)
    if again or not len(at):
        return {end + again}
    closed = end + int(at[0]) + 1
    if turn.rendered is None:
        return {end, closed}
    encoded = turn.rendered.encoded
    between = encoded.text[encoded.start(end) : encoded.start(closed - 1)]
    if not between.isascii() and not between.strip():  # an id that is part of a character may begin there
        return {end, closed}
    return {end} if between.strip() else {closed} if stopped else {end, closed}


def _repeated(dropped: Ids, rest: Ids) -> int:
    """How many of the last dropped ids `rest` begins with. Written again, and not the stitchers' own: the auditor judges these."""
    longest = min(len(dropped), len(rest))
    return next((n for n in range(longest, 0, -1) if np.array_equal(dropped[len(dropped) - n :], rest[:n])), 0)


def _visible(dropped: Ids, turn: Turn) -> str:
    """The text of a dropped id that the prompt shows to stand for a visible ASCII character; "" where none does. The last id of an
    answer may be a stop id, whose text says nothing."""
    if turn.rendered is None:
        return ""
    encoded = turn.rendered.encoded
    for id_ in np.unique(dropped[dropped != dropped[-1:]]).tolist():
        for at in np.flatnonzero(turn.prompt_ids == id_)[:1].tolist():
            own = encoded.text[encoded.start(at) : encoded.start(at + 1)]
            if any("!" <= character <= "~" for character in own):
                return own
    return ""


def _parted(encoded: EncodedText, at: int) -> bool:
    """Whether what an answer lacks before id `at` of the prompt parts from it between two characters. Where one of several bytes
    begins there, the lacking id may hold its first bytes, and only a tokenizer tells whether these are white space; ASCII is one
    byte each."""
    return encoded.text[encoded.start(at) :][:1].isascii()


def _stopped(turn: Turn) -> bool:
    """Whether the last sampled id is a stop id for sure."""
    return turn.completion.finish_reason == "stop" and len(turn.completion.ids) > 0


def _other_place(follow: int | None, due: set[int]) -> str:
    if follow is None or follow in due:
        return ""
    return f"its stream goes on with id {follow} of the prompt, and not with {' or '.join(map(str, sorted(due)))}"

"""How a turn's prompt continues the turn before it: found here as one `Edit`, which the stitcher applies to every stream.

The engine's view decides: T_i = p_i ∥ a_i, what the engine consumed and sampled, is compared with p_{i+1} (report, Box 4.2), never
the stream, which differs from it behind a boundary that isn't exact. The relations are tried from the strongest to the weakest, and
all arrays are compared whole.
"""

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from t1x.text.tokenizer import ChatTokenizer, EncodedText, Ids
from t1x.trajectory.records import Boundary, Turn


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be missing from a prompt that repeats the turn before it."""

    suffix_ids: int
    """Ids at the end of p_i, none of which ends a message."""
    dropped_ids: int
    """Stop and white-space ids at the end of a_i."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a turn does to the streams: all of them go on with the turn's prompt from `follow` on, masked, and then with what it
    sampled; every turn before it stays as it was sampled."""

    boundary: Boundary
    follow: int
    """Position in the turn's prompt."""
    captured: bool
    """Whether the stream's last id stands at `follow - 1` of the prompt too, so that this turn's capture has its row. Otherwise no
    capture has, and the row before it is put in its place (Eq. 14). False at a restart, which has no stream before it."""
    suffix: int = 0
    """s: ids at the end of the prompt before that this prompt doesn't repeat."""
    dropped: int = 0
    """u: stop and white-space ids at the end of the answer before that this prompt doesn't repeat."""
    skipped: int = 0
    """Ids before `follow` that repeat ids at the end of the answer before, so that no stop token stands twice."""


def shared_prefix(before: Turn, prompt: Ids) -> int:
    """How many ids at the start of T_i and p_{i+1} are the same."""
    m = len(before.prompt_ids)
    same = _same(before.prompt_ids, prompt)
    return same if same < m else m + _same(before.completion.ids, prompt[m:])


def exact(before: Turn, prompt: Ids) -> Edit | None:
    """T_i is a prefix of p_{i+1} (Eq. 6)."""
    m, n = len(before.prompt_ids), len(before.completion.ids)
    if not np.array_equal(before.prompt_ids, prompt[:m]) or not np.array_equal(before.completion.ids, prompt[m : m + n]):
        return None
    return Edit(Boundary.EXACT, follow=m + n, captured=True)


def edge(before: Turn, turn: Turn, tokenizer: ChatTokenizer, bounds: Bounds) -> Edit | None:
    """p_i without its last s ids ∥ a_i without its last u ids is a prefix of p_{i+1} (Eq. 7), where the u ids are stop or
    white-space ids, and none of the s ids is a stop id; the smallest s, then the smallest u.

    Several (s, u) may fit; the one that repeats most of what the engine consumed wins. With the smallest u first, an answer of
    white space alone could be found where such white space stands several turns back, and the stream would repeat these turns.

    Why s stops at a stop id: it stands for the template's suffix of the prompt, behind the last message. Answers in history end
    with a stop id, and so does every message in most templates, so what reaches further was rewritten. An answer that is dropped
    whole then needs no rule of its own: s is what p_i lacks in common with p_{i+1}, and at most that suffix.

    Where p_{i+1} was rendered, a_i's ids don't begin before the last answer in it does, which would be another turn's answer. Nor
    does the match end within that answer where ids were dropped: what it lacks would stand there in other ids (white space split
    otherwise, a character whose first byte alone agrees), and twice in the stream. Texts are compared then.

    p_i and p_{i+1} are compared once. A place where a_i may begin is looked at only if a_i's first id stands there."""
    history, answer, prompt = before.prompt_ids, before.completion.ids, turn.prompt_ids
    droppable = {*tokenizer.stop_ids, *tokenizer.whitespace_ids}
    most = _trailing(answer[len(answer) - min(bounds.dropped_ids, len(answer)) :], droppable)
    first, behind = _place(turn)
    longest = min(_suffix(history, tokenizer, bounds), len(history) - first)
    suffixes = np.arange(len(history) - _same(history, prompt), longest + 1)
    if len(answer) > most:
        begins = len(history) - suffixes
        suffixes = suffixes[begins < len(prompt)]
        suffixes = suffixes[prompt[len(history) - suffixes] == answer[0]]
    missing = ((s, len(answer) - _same(answer, prompt[len(history) - s :])) for s in suffixes.tolist())
    suffix, dropped = next((pair for pair in missing if pair[1] <= most), (0, None))
    if dropped is None:
        return None
    matched = len(history) - suffix + len(answer) - dropped
    skipped = _repeated(answer[len(answer) - dropped :], prompt[matched:])
    if dropped and matched + skipped < behind:
        return None
    at_end = skipped > 0 or (dropped == 0 and (len(answer) > 0 or suffix == 0))
    return Edit(Boundary.EDGE, matched + skipped, at_end, suffix, dropped, skipped)


def retokenized(before: Turn, turn: Turn, tokenizer: ChatTokenizer, bounds: Bounds) -> Edit | str:
    """The ids differ, the texts agree (Eq. 8): of the last assistant message as it was rendered, [b:e), by its place and never by
    searching; the text before b is that of p_i, from which the text of s ids at its end may be missing (`edge` says which), and
    [b:e) that of a_i without its stop ids, from which white space at the end may be missing. a_i stays as it was sampled, then
    comes p_{i+1} from e on (Eq. 10), without a stop token that a_i ends with. Where that isn't so, the answer says why."""
    if before.rendered is None or turn.rendered is None:
        return "There is no rendered text to compare instead"
    if turn.rendered.answer is None:
        return "The rendered prompt has no assistant message"
    old, new, (begin, end) = before.rendered.encoded, turn.rendered.encoded, turn.rendered.answer
    certain = _start(old.starts, len(old.ids) - _suffix(old.ids, tokenizer, bounds), len(old.text))
    if begin < certain or new.text[:begin] != old.text[:begin]:
        return f"The rendered text before the answer differs too, {_text_difference(old.text, new.text[:begin])}"
    answer = before.completion.ids
    said = tokenizer.decode_spans(answer[~np.isin(answer, tokenizer.stop_ids)]).text
    shown = new.text[begin:end]
    if not said.startswith(shown) or said[len(shown) :].strip():
        return f"The rendered answer differs too, {_text_difference(said, shown)}"
    follow = int(np.searchsorted(new.starts, end))
    if _start(new.starts, follow, len(new.text)) != end or not _whole(new, follow, end, tokenizer):
        return f"One id of the prompt stands for the end of the answer and for what follows it, at character {end}"
    stops = _trailing(answer, tokenizer.stop_ids)
    skipped = _repeated(answer[len(answer) - stops :], turn.prompt_ids[follow:])
    return Edit(Boundary.RETOKENIZED, follow + skipped, skipped > 0, skipped=skipped)


def _same(first: Ids, second: Ids) -> int:
    """The length of the common prefix."""
    n = min(len(first), len(second))
    differs = first[:n] != second[:n]
    at = int(differs.argmax()) if n else 0
    return at if n and differs[at] else n


def _suffix(history: Ids, tokenizer: ChatTokenizer, bounds: Bounds) -> int:
    """How many ids at the end of p_i may be missing from p_{i+1}."""
    end = history[len(history) - min(bounds.suffix_ids, len(history)) :]
    stops = np.flatnonzero(np.isin(end, tokenizer.stop_ids))
    return len(end) - 1 - int(stops[-1]) if len(stops) else len(end)


def _place(turn: Turn) -> tuple[int, int]:
    """[first, behind): ids of the prompt that begin within the last answer as it was rendered; none where that isn't known."""
    if turn.rendered is None or turn.rendered.answer is None:
        return 0, 0
    first, behind = np.searchsorted(turn.rendered.encoded.starts, turn.rendered.answer)
    return int(first), int(behind)


def _trailing(ids: Ids, wanted: Container[int]) -> int:
    """How many ids at the end are of `wanted`."""
    count = 0
    for id_ in reversed(ids.tolist()):
        if id_ not in wanted:
            break
        count += 1
    return count


def _repeated(dropped: Ids, rest: Ids) -> int:
    """The length of the longest suffix of `dropped` that `rest` begins with."""
    longest = min(len(dropped), len(rest))
    return next((k for k in range(longest, 0, -1) if np.array_equal(dropped[len(dropped) - k :], rest[:k])), 0)


def _start(starts: Ids, index: int, end: int) -> int:
    """The character at which an id begins; `end` behind the last one."""
    return int(starts[max(0, index)]) if index < len(starts) else end


def _whole(encoded: EncodedText, follow: int, end: int, tokenizer: ChatTokenizer) -> bool:
    """Whether the last id before `follow` ends with the last character before `end`, rather than with the first bytes of the next
    one, which character offsets don't tell. No character takes more than four ids, so the last eight show it, from where the first
    one's character begins: tokenizers that fall back to bytes read none of a run of them that isn't UTF-8."""
    first = int(np.searchsorted(encoded.starts, encoded.starts[max(0, follow - 8)]))
    return tokenizer.decode_spans(encoded.ids[first:follow]).text[-1:] == encoded.text[:end][-1:]


def _text_difference(old: str, new: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    around = slice(max(0, at - 8), at + 8)
    return f"from character {at}: {old[around]!r} is {new[around]!r} in this prompt"

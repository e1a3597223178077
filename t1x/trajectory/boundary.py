"""How a turn's prompt continues the turn before it: found here as one `Edit`, which the stitcher applies to every stream.

The engine's view decides: T_i = p_i ∥ a_i, what the engine consumed and sampled, is compared with p_{i+1} (report, Box 4.2), never
the stream, which differs from it behind a boundary that isn't exact. The relations are tried from the strongest to the weakest, and
all arrays are compared whole. A text-based harness asks here too whether it has to announce a restart, so that both agree.
"""

from collections.abc import Iterable

import numpy as np

from t1x.text.prefix import common_ids, common_text
from t1x.text.tokenizer import ChatTokenizer, EncodedText, Ids
from t1x.trajectory.boundary_ids import behind_last_stop, blank, closed_again, repeated, repetition, template_end, trailing
from t1x.trajectory.edit import Answered, Bounds, Edit, Shown
from t1x.trajectory.records import Boundary


def shared_prefix(before: Answered, prompt: Ids) -> int:
    """How many ids at the start of T_i and p_{i+1} are the same."""
    m = len(before.prompt_ids)
    same = common_ids(before.prompt_ids, prompt)
    return same if same < m else m + common_ids(before.completion.ids, prompt[m:])


def exact(before: Answered, prompt: Ids) -> Edit | None:
    """T_i is a prefix of p_{i+1} (Eq. 6)."""
    m, n = len(before.prompt_ids), len(before.completion.ids)
    if not np.array_equal(before.prompt_ids, prompt[:m]) or not np.array_equal(before.completion.ids, prompt[m : m + n]):
        return None
    return Edit(Boundary.EXACT, follow=m + n, captured=True)


def inexact(before: Answered, turn: Shown, tokenizer: ChatTokenizer, bounds: Bounds) -> Edit | str:
    """The stronger one of the relations below. Where neither holds, what keeps the texts from agreeing."""
    return edge(before, turn, tokenizer, bounds) or retokenized(before, turn, tokenizer, bounds)


def edge(before: Answered, turn: Shown, tokenizer: ChatTokenizer, bounds: Bounds) -> Edit | None:
    """p_i without its last s ids ∥ a_i without its last u ids is a prefix of p_{i+1} (Eq. 7). The u ids are stop ids or white
    space; the s ids are what the template ends every prompt with, or, where p_i doesn't end so, behind its last stop id. Of p_i
    one id is kept or more.

    Short answers stand in other places too, so it must be certain where a_i begins in p_{i+1}:
    - where p_{i+1} was rendered, at its last answer. Where ids were dropped, the match doesn't end within that answer either: what
      it lacks would stand there in other ids (white space split otherwise, a character whose first byte alone agrees), and twice
      in the stream. Texts are compared then;
    - else at the smallest s with which an id of a_i that isn't blank stands where p_i and p_{i+1} part, or behind that: what both
      have says nothing of a_i;
    - a blank a_i shows no place: that's where they part then, and p_i must be known to end as the template's prompts do."""
    history, answer, prompt = before.prompt_ids, before.completion.ids, turn.prompt_ids
    suffix, known = _suffix(history, tokenizer, bounds)
    part, least, behind = common_ids(history, prompt), max(1, len(history) - suffix), 0
    places: Iterable[int] = _places(answer, prompt, least, part)
    if rendered := turn.rendered is not None and turn.rendered.answer is not None:
        first, behind = _rendered_answer(turn)
        places = [first] if least <= first <= part else []
    for begin in places:
        follow = begin + common_ids(answer, prompt[begin:])
        dropped = answer[follow - begin :]
        if len(dropped) > bounds.dropped_ids or not blank(dropped, tokenizer):
            continue
        certain = rendered or begin == len(history) or (known and begin == part)
        if not certain and blank(answer, tokenizer, part - begin, follow - begin):
            continue
        skipped = repeated(dropped, prompt[follow:])
        if len(dropped) and follow + skipped < behind:
            return None
        skipped = skipped or closed_again(dropped, prompt[follow:], tokenizer)
        at_end = skipped > 0 or (not len(dropped) and (len(answer) > 0 or begin == len(history)))
        return Edit(Boundary.EDGE, follow + skipped, at_end, len(history) - begin, len(dropped), skipped)
    return None


def retokenized(before: Answered, turn: Shown, tokenizer: ChatTokenizer, bounds: Bounds) -> Edit | str:
    """The ids differ, the texts agree (Eq. 8): of the last assistant message as it was rendered, [b:e), by its place and never by
    searching; the text before b is that of p_i, from which the text of s ids at its end may be missing (`edge` says which), and
    [b:e) that of a_i without its stop ids, from which white space at the end may be missing. a_i stays as it was sampled, then
    comes p_{i+1} from e on (Eq. 10), without a stop token that a_i ends with. Where that isn't so, the answer says why."""
    if before.rendered is None or turn.rendered is None:
        return "There is no rendered text to compare instead"
    if turn.rendered.answer is None:
        return "The rendered prompt has no assistant message"
    old, new, (begin, end) = before.rendered.encoded, turn.rendered.encoded, turn.rendered.answer
    certain = old.start(len(old.ids) - _suffix(old.ids, tokenizer, bounds)[0])
    if begin < certain or new.text[:begin] != old.text[:begin]:
        return f"The rendered text before the answer differs too, {_text_difference(old.text, new.text[:begin])}"
    answer = before.completion.ids
    said = tokenizer.decode_spans(answer[~np.isin(answer, tokenizer.stop_ids)]).text
    shown = new.text[begin:end]
    if not said.startswith(shown) or said[len(shown) :].strip():
        return f"The rendered answer differs too, {_text_difference(said, shown)}"
    follow = new.id_at(end)
    if follow is None or not _whole(new, follow, end, tokenizer):
        return f"One id of the prompt stands for the end of the answer and for what follows it, at character {end}"
    stops, rest = answer[len(answer) - trailing(answer, tokenizer.stop_ids) :], turn.prompt_ids[follow:]
    skipped = repetition(stops, rest, tokenizer)
    return Edit(Boundary.RETOKENIZED, follow + skipped, skipped > 0, skipped=skipped)


def _suffix(history: Ids, tokenizer: ChatTokenizer, bounds: Bounds) -> tuple[int, bool]:
    """How many ids at the end of p_i may be missing from p_{i+1}, and whether p_i is known to end as the template's prompts do."""
    end = template_end(history, tokenizer)
    most = min(bounds.suffix_ids, len(history))
    return (behind_last_stop(history, most, tokenizer), False) if end is None else (min(most, end), True)


def _rendered_answer(turn: Shown) -> tuple[int, int]:
    """[first, behind): ids of the prompt that begin within the last answer; -1 is first where an id stands across its beginning."""
    assert turn.rendered is not None
    assert turn.rendered.answer is not None
    text, answer = turn.rendered.encoded, turn.rendered.answer
    first = text.id_at(answer[0])
    return -1 if first is None else first, int(np.searchsorted(text.starts, answer[1]))


def _places(answer: Ids, prompt: Ids, least: int, part: int) -> Iterable[int]:
    """Where a_i may begin, the smallest s first: where p_i and p_{i+1} part, and before that down to `least` where its first id
    stands."""
    if part >= least:
        yield part
    if len(answer):
        yield from (least + np.flatnonzero(prompt[least:part] == answer[0])[::-1]).tolist()


def _whole(encoded: EncodedText, follow: int, end: int, tokenizer: ChatTokenizer) -> bool:
    """Whether the last id before `follow` ends with the last character before `end`, rather than with the first bytes of the next
    one, which character offsets don't tell. No character takes more than four ids, so the last eight show it, from where the first
    one's character begins: tokenizers that fall back to bytes read none of a run of them that isn't UTF-8. Spaces are passed over,
    since one behind a special token may be the tokenizer's own, which its ids don't tell."""
    first = int(np.searchsorted(encoded.starts, encoded.starts[max(0, follow - 8)]))
    said = tokenizer.decode_spans(encoded.ids[first:follow]).text
    return said.rstrip(" ")[-1:] == encoded.text[int(encoded.starts[first]) : end].rstrip(" ")[-1:]


def _text_difference(old: str, new: str) -> str:
    at = common_text(old, new)
    around = slice(max(0, at - 8), at + 8)
    return f"from character {at}: {old[around]!r} is {new[around]!r} in this prompt"

"""Ids around a boundary: what says nothing, what is repeated, and what the template put there."""

from collections.abc import Container

import numpy as np

from t1x.text.tokenizer import ChatTokenizer, Ids


def blank(ids: Ids, tokenizer: ChatTokenizer, first: int = 0, stop: int | None = None) -> bool:
    """Whether the ids [first, stop) of `ids` are stop ids or stand for nothing but white space, be it that several are one such
    character (U+00A0 in bytes). An id that stands for nothing at all is blank."""
    stops, white = tokenizer.stop_ids, tokenizer.blank_ids
    others = [id_ for id_ in ids[first:stop].tolist() if id_ not in stops and id_ not in white]
    if not others or any(tokenizer.bytes_of(id_).decode(errors="ignore").strip() for id_ in others):
        return not others  # an id that has a letter of its own is enough, and most have
    said = tokenizer.decode_spans(ids)
    own = list(zip(ids.tolist(), said.starts.tolist(), said.ends().tolist(), strict=True))[first:stop]
    return all(not said.text[start:end].strip() for id_, start, end in own if id_ not in stops and tokenizer.bytes_of(id_))


def trailing(ids: Ids, wanted: Container[int]) -> int:
    """How many ids at the end are of `wanted`."""
    count = 0
    for id_ in reversed(ids.tolist()):
        if id_ not in wanted:
            break
        count += 1
    return count


def repeated(dropped: Ids, rest: Ids) -> int:
    """The length of the longest suffix of `dropped` that `rest` begins with."""
    longest = min(len(dropped), len(rest))
    return next((k for k in range(longest, 0, -1) if np.array_equal(dropped[len(dropped) - k :], rest[:k])), 0)


def closed_again(dropped: Ids, rest: Ids, tokenizer: ChatTokenizer) -> int:
    """How many ids `rest` begins with that are white space and then the stop id that `dropped` ends with: some templates write a
    line break before it. 0 where that isn't so."""
    if not len(dropped) or dropped[-1] not in tokenizer.stop_ids:
        return 0
    at = np.flatnonzero(rest == dropped[-1])[:1]
    return int(at[0]) + 1 if len(at) and blank(rest[: at[0]], tokenizer) else 0


def repetition(dropped: Ids, rest: Ids, tokenizer: ChatTokenizer) -> int:
    """How many ids `rest` begins with that repeat the end of `dropped`, so that a stream that ends with these does without."""
    return repeated(dropped, rest) or closed_again(dropped, rest, tokenizer)


def template_end(prompt: Ids, tokenizer: ChatTokenizer) -> int | None:
    """How many ids at a prompt's end stand for what the template ends every prompt with; None where it doesn't end so."""
    end = max(tokenizer.quirks.generation_prompt, tokenizer.quirks.prompt_only, key=len)
    longest = len(end.encode()) + 1  # no id but a space in front stands for less than a byte
    last = tokenizer.decode_spans(prompt[max(0, len(prompt) - longest) :])
    if not last.text.endswith(end):
        return None
    return len(last.ids) - int(np.searchsorted(last.starts, len(last.text) - len(end)))


def behind_last_stop(prompt: Ids, most: int, tokenizer: ChatTokenizer) -> int:
    """How many of the last `most` ids stand behind the last stop id among them."""
    end = prompt[max(0, len(prompt) - most) :]
    stops = np.flatnonzero(np.isin(end, tokenizer.stop_ids))
    return len(end) - 1 - int(stops[-1]) if len(stops) else len(end)

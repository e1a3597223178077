"""Texts to ids, and at which character each id begins.

Invariant: a text that is encoded piece by piece has the ids that it has as a whole. Special tokens part the pieces, so none merges
with another; SentencePiece's white space in front stands where it would in the whole.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import tokenizers

from t1x.text.tokenizer import EncodedText, Ids

Piece = tuple[str, int | None]
"""A text; and the id that stands for all of it, where it is a special token."""


class TextEncoder:
    """Encodes text that isn't a special token, whatever it spells."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """`tokenizer` has no post-processor and encodes the spelling of special tokens as text."""
        self._first = tokenizer
        self._later = _inside(tokenizer)

    def plain(self, text: str, *, first: bool) -> Ids:
        """[n]: the ids of a text that stands at the beginning of a sequence, or behind a special token."""
        ids = (self._first if first else self._later).encode(text, add_special_tokens=False).ids
        return np.array(ids, np.int32)

    def pieces(self, pieces: Iterable[Piece], *, first: bool = True) -> EncodedText:
        """The pieces as one sequence, or (where they aren't the `first`) as what stands behind a special token of one."""
        ids: list[int] = []
        starts: list[int] = []
        texts: list[str] = []
        at = 0
        for text, special in pieces:
            if special is not None:
                ids.append(special)
                starts.append(at)
            elif text:
                found = (self._first if first else self._later).encode(text, add_special_tokens=False)
                ids += found.ids
                starts += [at + start for start in _starts(text, found.offsets)]
            first = False
            texts.append(text)
            at += len(text)
        return EncodedText("".join(texts), np.array(ids, np.int32), np.maximum.accumulate(np.array(starts, np.int32)))


def _starts(text: str, offsets: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Where each id begins. Ids that stand for single bytes have the offsets of all the bytes beside them: they share them out."""
    for (start, end), run in groupby(offsets):
        n = len(list(run))
        shared = [start + i for i, letter in enumerate(text[start:end]) for _ in letter.encode(errors="replace")] if n > 1 else []
        yield from shared if len(shared) == n else [start] * n


def _inside(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The tokenizer as it is behind a sequence's beginning, where some put no white space in front (`prepend_scheme` first)."""
    state = json.loads(tokenizer.to_str())
    splits = json.dumps(state["pre_tokenizer"])
    state["pre_tokenizer"] = json.loads(splits.replace('"prepend_scheme": "first"', '"prepend_scheme": "never"'))
    if json.dumps(state["pre_tokenizer"]) == splits:
        return tokenizer
    later = tokenizers.Tokenizer.from_str(json.dumps(state))
    later.encode_special_tokens = True
    return later

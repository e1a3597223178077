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
        return joined([self.piece(*piece, first=first and i == 0) for i, piece in enumerate(pieces)])

    def piece(self, text: str, special: int | None, *, first: bool) -> EncodedText:
        """One piece, at the beginning of a sequence or behind a special token."""
        if special is not None:
            return EncodedText(text, np.array([special], np.int32), np.zeros(1, np.int32))
        found = (self._first if first else self._later).encode(text, add_special_tokens=False)
        starts = np.array(list(_starts(text, found.offsets)), np.int32)
        return EncodedText(text, np.array(found.ids, np.int32), np.maximum.accumulate(starts))


def joined(parts: Sequence[EncodedText]) -> EncodedText:
    """The parts as one text."""
    if not parts:
        return EncodedText("", np.zeros(0, np.int32), np.zeros(0, np.int32))
    lengths = [len(part.text) for part in parts]
    before = np.repeat(np.cumsum([0, *lengths[:-1]]), [len(part.ids) for part in parts])
    starts = np.concatenate([part.starts for part in parts]) + before
    return EncodedText("".join(part.text for part in parts), np.concatenate([part.ids for part in parts]), starts.astype(np.int32))


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

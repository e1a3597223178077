"""Ids to text, and at which character each id begins.

Invariant: the text of ids is the one that a conversation with these ids was encoded from: a tokenizer's white space in front of a
text is gone, special tokens are spelled out, and bytes that aren't UTF-8 read as U+FFFD, as many as the tokenizer has for them.
An id that the tokenizer hasn't, as a padded vocabulary has some, reads as nothing, wherever it stands: so the library decodes it.
"""

import re
from itertools import groupby

import numpy as np
import numpy.typing as npt
import tokenizers

from t1x.text.encoder import TextEncoder
from t1x.text.tokenizer import EncodedText, Ids

_BYTE = re.compile("<0x([0-9A-F]{2})>")
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_ALPHABET = {chr(byte): byte for byte in _PRINTED} | {
    chr(0x100 + i): byte for i, byte in enumerate(sorted(set(range(0x100)) - set(_PRINTED)))
}
"""Byte-level tokenizers' letters: printable bytes stand for themselves, the others follow from U+0100 on."""


class TextDecoder:
    """Decodes by the bytes that each id stands for, so that the time is linear in the number of ids."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, encoder: TextEncoder, special: dict[str, int]) -> None:
        self._tokenizer = tokenizer
        self._pieces = {id_: text.encode() for text, id_ in special.items()}
        """Bytes of the ids that were met."""
        self._special = np.array(sorted(special.values()), np.int32)
        decoder = tokenizer.decoder
        self._byte_level = decoder is not None and decoder.decode(["\u0120a"]) == " a"
        self._byte_fallback = decoder is not None and decoder.decode(["a", "<0xC3>", "<0xA9>"]) == "aé"
        self._anchor = encoder.plain("a", first=True).tolist()
        self._leads = [self._piece(int(encoder.plain("a", first=first)[0])).startswith(b" ") for first in (True, False)]
        """Whether the tokenizer puts white space in front of a text at the beginning of a sequence; behind a special token."""

    def spans(self, ids: Ids) -> EncodedText:
        """The text, with special tokens, and where each id begins."""
        ids = np.asarray(ids, np.int32)
        pieces = [self._piece(id_) for id_ in ids.tolist()]
        if self._byte_fallback:
            self._replace_invalid(ids, pieces)
        special = np.isin(ids, self._special)
        said = np.flatnonzero([len(piece) for piece in pieces])
        fresh = said[~special[said] & np.concatenate([[True], special[said][:-1]])] if len(said) else said
        for i in fresh.tolist():
            if self._leads[0 if i == said[0] else 1]:
                pieces[i] = pieces[i].removeprefix(b" ")
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        text, character = _characters(b"".join(pieces))
        return EncodedText(text, ids, character[np.concatenate([[0], ends[:-1]])] if len(ids) else np.zeros(0, np.int32))

    def text(self, id_: int) -> str:
        """What one id stands for inside a text."""
        return self._piece(id_).decode(errors="replace")

    def bytes_of(self, id_: int) -> bytes:
        """What one id stands for inside a text, which alone may be no text."""
        return self._piece(id_)

    def _piece(self, id_: int) -> bytes:
        if id_ not in self._pieces:
            self._pieces[id_] = self._bytes(id_)
        return self._pieces[id_]

    def _bytes(self, id_: int) -> bytes:
        token = self._tokenizer.id_to_token(id_) or ""
        if self._byte_level:
            return bytes(_ALPHABET[letter] for letter in token) if _ALPHABET.keys() >= set(token) else token.encode()
        if self._byte_fallback and (byte := _BYTE.fullmatch(token)):
            return bytes.fromhex(byte[1])
        before, both = (self._tokenizer.decode(ids, skip_special_tokens=False) for ids in (self._anchor, [*self._anchor, id_]))
        return both[len(before) :].encode()

    def _replace_invalid(self, ids: Ids, pieces: list[bytes]) -> None:
        """Where single bytes in a row aren't UTF-8, each of them reads as U+FFFD."""
        bytes_ = [bool(_BYTE.fullmatch(self._tokenizer.id_to_token(id_) or "")) for id_ in ids.tolist()]
        for is_bytes, run in groupby((i for i, piece in enumerate(pieces) if piece), bytes_.__getitem__):
            where = list(run)
            if is_bytes and _invalid(b"".join(pieces[i] for i in where)):
                for i in where:
                    pieces[i] = "\ufffd".encode()


def _invalid(data: bytes) -> int:
    """How many bytes the first U+FFFD of a text stands for; 0 where it has none."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end - error.start
    return 0


def _characters(data: bytes) -> tuple[str, npt.NDArray[np.int32]]:
    """The text of bytes, and for each byte, and for the end, the character that it belongs to."""
    escaped = data.decode(errors="surrogateescape")  # a code for each byte that isn't UTF-8
    codes = np.frombuffer(escaped.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    invalid = (codes >= 0xDC80) & (codes <= 0xDCFF)
    lengths[invalid] = 1
    begins, starts = np.ones(len(codes), np.bool_), np.cumsum(lengths) - lengths
    for i in np.flatnonzero(invalid).tolist():
        if begins[i]:  # one U+FFFD stands for at most three bytes, and the fourth shows where it ends
            begins[i + 1 : i + _invalid(data[starts[i] : starts[i] + 4])] = False
    text = data.decode(errors="replace")
    return text, np.append(np.repeat(np.cumsum(begins) - 1, lengths), len(text)).astype(np.int32)

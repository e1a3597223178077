"""The special tokens of a tokenizer, in texts.

Invariant: what a content spells is never taken for a template's own special token, nor does it become one together with the text
that the template puts beside it.
"""

import re
from collections.abc import Iterator

import tokenizers

PRIVATE = re.compile("[\U00100000-\U0010fffd]")
FIRST_CODE = 0x100010
"""Code points of a private plane, from here on, are those by which a `Veil` stands for texts."""


class SpecialTokens:
    """Which texts are special tokens, and where they stand."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        found = {id_: token for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        self.ids = {token.content: id_ for id_, token in found.items()}
        longest = sorted(found.values(), key=lambda token: -len(token.content))
        self._spelled = re.compile("|".join(re.escape(token.content) for token in longest) or "(?!)")
        flagged = [r"\s*" * token.lstrip + re.escape(token.content) + r"\s*" * token.rstrip for token in longest]
        self._split = re.compile("(" + ("|".join(flagged) or "(?!)") + ")")
        self._begins = {token.content[:n] for token in longest for n in range(1, len(token.content))}
        self._ends = {token.content[n:] for token in longest for n in range(1, len(token.content))}
        self._longest = max(map(len, self.ids), default=0)

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        """The text in pieces: special tokens (with the white space that they eat), each with its id, and the texts between them."""
        for i, piece in enumerate(self._split.split(text)):
            if piece:
                yield piece, (self.ids.get(piece, self.ids.get(piece.strip())) if i % 2 else None)

    def first(self, text: str) -> tuple[str, int] | None:
        """The first special token of a text, and where the text behind it begins."""
        found = self._split.search(text)
        return (found[0].strip(), found.end()) if found else None


class Veil:
    """Private code points in place of what a template must not see in contents: special tokens' spellings, parts of them at a
    content's ends, the private code points themselves. One a rendering."""

    def __init__(self, special: SpecialTokens) -> None:
        self._special = special
        self._hidden = re.compile(f"{special._spelled.pattern}|{PRIVATE.pattern}")
        self._codes: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """The text for the template."""
        if 0 < len(body := text.strip()) < self._special._longest and any(body in token for token in self._special.ids):
            return text.replace(body, self._code(body))
        text = self._hidden.sub(lambda found: self._code(found[0]), text)
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        for n in range(min(self._special._longest, end - start), 0, -1):
            if text[start : start + n] in self._special._ends:
                text = text[:start] + self._code(text[start : start + n]) + text[start + n :]
                end -= n - 1
                break
        for n in range(min(self._special._longest, end - start), 0, -1):
            if text[end - n : end] in self._special._begins:
                return text[: end - n] + self._code(text[end - n : end]) + text[end:]
        return text

    def show(self, text: str) -> str:
        """What a rendered text says."""
        return PRIVATE.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def _code(self, text: str) -> str:
        if text not in self._codes:
            code = chr(FIRST_CODE + len(self._codes))
            self._codes[text], self._texts[code] = code, text
        return self._codes[text]

    def mark(self) -> str:
        """A code point that stands for nothing else."""
        return self._code("")

"""The special tokens of a tokenizer, in texts."""

import re
from collections.abc import Iterator

import tokenizers


class SpecialTokens:
    """Which texts are special tokens, and where they stand."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        found = {id_: token for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        self.ids = {token.content: id_ for id_, token in found.items()}
        longest = sorted(found.values(), key=lambda token: -len(token.content))
        self.spelled = re.compile("|".join(re.escape(token.content) for token in longest) or "(?!)")
        """Finds their spellings, the longest first."""
        flagged = [r"\s*" * token.lstrip + re.escape(token.content) + r"\s*" * token.rstrip for token in longest]
        self._split = re.compile("(" + ("|".join(flagged) or "(?!)") + ")")
        self.beginnings = {token.content[:n] for token in longest for n in range(1, len(token.content))}
        """Of spellings, whole ones left out; so too `endings`."""
        self.endings = {token.content[n:] for token in longest for n in range(1, len(token.content))}
        self.longest = max(map(len, self.ids), default=0)
        """Characters of the longest spelling."""

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        """The text in pieces: special tokens (with the white space that they eat), each with its id, and the texts between them."""
        for i, piece in enumerate(self._split.split(text)):
            if piece:
                yield piece, (self.ids.get(piece, self.ids.get(piece.strip())) if i % 2 else None)

    def first(self, text: str) -> tuple[str, int] | None:
        """The first special token of a text, and where the text behind it begins."""
        found = self._split.search(text)
        return (found[0].strip(), found.end()) if found else None

"""What a chat template must not see in contents.

Invariant: what a content spells is never taken for a template's own special token, nor does it become one together with the text
that the template puts beside it.
"""

import re

from t1x.text.special_tokens import SpecialTokens

PRIVATE = re.compile("[\U00100000-\U0010fffd]")
FIRST_CODE = 0x100010
"""Code points of a private plane, from here on, are those by which a `Veil` stands for texts."""


class Veil:
    """Private code points in place of what a template must not see in contents: special tokens' spellings, parts of them at a
    content's ends, the private code points themselves. One a rendering, or one a conversation, whose codes then stay."""

    def __init__(self, special: SpecialTokens) -> None:
        self._special = special
        self._hidden = re.compile(f"{special.spelled.pattern}|{PRIVATE.pattern}")
        self._codes: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """The text for the template."""
        if 0 < len(body := text.strip()) < self._special.longest and any(body in token for token in self._special.ids):
            return text.replace(body, self._code(body))
        text = self._hidden.sub(lambda found: self._code(found[0]), text)
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        for n in range(min(self._special.longest, end - start), 0, -1):
            if text[start : start + n] in self._special.endings:
                text = text[:start] + self._code(text[start : start + n]) + text[start + n :]
                end -= n - 1
                break
        for n in range(min(self._special.longest, end - start), 0, -1):
            if text[end - n : end] in self._special.beginnings:
                return text[: end - n] + self._code(text[end - n : end]) + text[end:]
        return text

    def show(self, text: str) -> str:
        """What a rendered text says."""
        return PRIVATE.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def shown_length(self, text: str) -> int:
        """Characters of `show(text)`."""
        return len(text) + sum(text.count(code) * (len(shown) - 1) for code, shown in self._texts.items())

    def _code(self, text: str) -> str:
        if text not in self._codes:
            code = chr(FIRST_CODE + len(self._codes))
            self._codes[text], self._texts[code] = code, text
        return self._codes[text]

    def mark(self) -> str:
        """A code point that stands for nothing else."""
        return self._code("")

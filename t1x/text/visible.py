"""Text from programs and models, made harmless for whoever reads it in a terminal or a browser."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSEEN = re.compile(r"[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def visible(text: str) -> str:
    """The text with control characters (tab and newline aside) as `cat -v` shows them: `^[` for escape, `^M` for carriage return,
    `^?` for delete, `M-^[` for the escape of the second control set."""
    return _CONTROL.sub(lambda found: _caret(ord(found[0])), text)


def legible(text: str) -> str:
    """As `visible`, for a person: characters that change the direction of writing, or that nobody sees, are `<U+202E>` and so on.
    What an agent reads keeps them, since a script or a file may depend on them."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", visible(text))


def _caret(code: int) -> str:
    return f"{'M-' if code >= 0x80 else ''}^{chr(code & 0x7F ^ 0x40)}"

"""Text from programs and models, made harmless for whoever reads it in a terminal."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """The text with control characters (tab and newline aside) as `cat -v` shows them: `^[` for escape, `^M` for carriage return,
    `^?` for delete, `M-^[` for the escape of the second control set."""
    return _CONTROL.sub(lambda found: _caret(ord(found[0])), text)


def _caret(code: int) -> str:
    return f"{'M-' if code >= 0x80 else ''}^{chr(code & 0x7F ^ 0x40)}"

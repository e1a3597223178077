"""Words of a Dockerfile: quotes, escapes and variables, by the rules of Docker's own lexer (BuildKit's `shell.Lex`).

| where | what is special |
| --- | --- |
| bare | the escape character before anything, quotes, `$` |
| in `"…"` | the escape character before `"`, `$` and itself; `$` |
| in `'…'` | nothing |
"""

import re
from collections.abc import Mapping

ESCAPE = "\\"
"""Docker's escape character where no directive says otherwise."""
_NAME = re.compile(r"[^\W\d]\w*")
_SPECIAL = re.compile(r"\d+|[@*#?$!-]")
_PLAIN = re.compile(r"[\w./:=+,@%-]+")


def split_words(text: str, escape: str = ESCAPE) -> list[str]:
    """The words between blanks, quotes and escapes left in."""
    e = re.escape(escape)
    quoted = rf"'[^']*(?:'|$)|\"(?:{e}.|[^\"{e}])*{e}?(?:\"|$)"
    return re.findall(rf"(?:{quoted}|{e}.|\S)+", text)


def expand(text: str, variables: Mapping[str, str], escape: str = ESCAPE) -> str:
    """Text without its quotes and escapes, and with `$X`, `${X}`, `${X:-default}`, `${X:+instead}` and `${X:?message}` (also
    without the colon) replaced. Raises `ValueError` for a missing quote or brace, and for a variable that isn't among `variables`:
    Docker would put what the base image says there, or nothing."""
    return _Reader(text, variables, escape).until("")


def quote(value: str) -> str:
    """A word that `expand` turns into `value`. Raises `ValueError` for a value of several lines."""
    if "\n" in value or "\0" in value:
        raise ValueError(f"{value!r} doesn't fit on one line of a Dockerfile")
    return value if _PLAIN.fullmatch(value) else '"' + re.sub(r'(["$\\])', r"\\\1", value) + '"'


class _Reader:
    """Goes through a text once."""

    def __init__(self, text: str, variables: Mapping[str, str], escape: str) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self._escape = escape

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def until(self, end: str) -> str:
        """Bare text up to `end`, which is consumed; empty: the end of the text."""
        read = ""
        while (char := self._take()) != end:
            if not char:
                raise ValueError(f"`{end}` is missing")
            if char == "'":
                read += self._single()
            elif char == '"':
                read += self._double()
            elif char == "$":
                read += self._variable()
            else:
                read += self._take() if char == self._escape else char
        return read

    def _single(self) -> str:
        end = self._text.find("'", self._at)
        if end < 0:
            raise ValueError("a `'` is missing")
        read = self._text[self._at : end]
        self._at = end + 1
        return read

    def _double(self) -> str:
        read = ""
        while (char := self._take()) != '"':
            if not char:
                raise ValueError('a `"` is missing')
            if char == "$":
                read += self._variable()
            else:
                read += self._take() if char == self._escape and self._peek() in ('"', "$", self._escape) else char
        return read

    def _variable(self) -> str:
        """What stands after a `$`."""
        braces = self._peek() == "{"
        self._at += braces
        if special := _SPECIAL.match(self._text, self._at):
            raise ValueError(f"${special[0]} is nothing that ENV can set; write {self._escape}$ for the character itself")
        match = _NAME.match(self._text, self._at)
        if match is None:
            if braces:
                raise ValueError("`${` needs a name")
            return "$"
        self._at = match.end()
        return self._substitution(match[0]) if braces else self._value(match[0])

    def _substitution(self, name: str) -> str:
        """What stands after `${name`."""
        colon = self._peek() == ":"
        self._at += colon
        sign = self._take()
        if sign == "}" and not colon:
            return self._value(name)
        if sign not in ("-", "+", "?"):
            raise ValueError(f"of ${{{name}…}} are understood ${{{name}}}, ${{{name}:-…}}, ${{{name}:+…}} and ${{{name}:?…}}")
        word = self.until("}")
        there = bool(self._variables.get(name)) if colon else name in self._variables
        if sign == "+":
            return word if there else ""
        if there:
            return self._variables[name]
        if sign == "?":
            raise ValueError(f"{name}: {word or 'is not set'}")
        return word

    def _value(self, name: str) -> str:
        if name not in self._variables:
            raise ValueError(
                f"${name} is set by no ENV before, and local sandboxes don't have what the base image sets; set it, "
                f"or write ${{{name}:-default}}"
            )
        return self._variables[name]

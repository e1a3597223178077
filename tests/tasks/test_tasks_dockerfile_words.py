"""Quotes, escapes and variables, against a slow reader that follows the rules one character at a time."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from t1x.tasks.dockerfile_words import expand, quote, split_words

ESCAPES = st.sampled_from("\\`")
TEXTS = st.text(st.sampled_from("ab \t'\"\\`$é"), max_size=14)
VARIABLES = {"a": "A", "b": 'it\'s "$b" \\', "ab": ""}


def slow_split(text: str, escape: str) -> list[str]:
    words: list[str] = [""]
    quote = ""
    escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif quote:
            if char == quote:
                quote = ""
            elif char == escape and quote == '"':
                escaped = True
        elif char == escape:
            escaped = True
        elif char in "'\"":
            quote = char
        elif char.isspace():
            words.append("")
            continue
        words[-1] += char
    return [word for word in words if word]


def slow_expand(text: str, escape: str) -> str | None:
    """Only `$name`; None for a missing quote, and for a name that isn't there."""
    chars = list(text)
    quote = read = ""
    while chars:
        char = chars.pop(0)
        if quote == "'" or (char in "'\"" and (quote in ("", char))):
            if char == (quote or char) and char in "'\"":
                quote = "" if quote else char
            else:
                read += char
        elif char == escape and not quote:
            read += chars.pop(0) if chars else ""
        elif char == escape and chars and chars[0] in ('"', "$", escape):
            read += chars.pop(0)
        elif char == "$":
            name = ""
            while chars and chars[0].isalpha():
                name += chars.pop(0)
            if name and name not in VARIABLES:
                return None
            if not name and chars and chars[0] == "$":
                return None  # a parameter of shells that no Dockerfile has
            read += VARIABLES[name] if name else "$"
        else:
            read += char
    return None if quote else read


@given(TEXTS, ESCAPES)
@example('a\\ b \'c \\\' d"\\" "', "\\")
def test_words_are_those_of_a_slow_reader(text, escape):
    assert split_words(text, escape) == slow_split(text, escape)


@given(TEXTS, ESCAPES)
@example("\"a\\b\\\"\\$\\\\'\"'$a\\'\\$$ab$a", "\\")
def test_expansion_is_that_of_a_slow_reader(text, escape):
    expected = slow_expand(text, escape)
    if expected is None:
        with pytest.raises(ValueError, match=r"missing|set by no ENV|nothing that ENV can set"):
            expand(text, VARIABLES, escape)
    else:
        assert expand(text, VARIABLES, escape) == expected


@given(st.text(st.characters(exclude_characters="\n\0", exclude_categories=("Cs",))))
def test_what_is_quoted_expands_to_itself_and_is_one_word(value):
    assert expand(quote(value), {}) == value
    assert split_words(f"x {quote(value)} y")[1:-1] == [quote(value)]


@pytest.mark.parametrize("value", ["a\nb", "\0"])
def test_what_fits_on_no_line_is_refused(value):
    with pytest.raises(ValueError, match="doesn't fit on one line"):
        quote(value)


SUBSTITUTIONS = {
    "${a}": "A",
    "$a$a": "AA",
    "${a}b$a.b": "AbA.b",
    "'$a'\"$a\"": "$aA",
    "\\$a": "$a",
    "${z:-1}${z-2}": "12",
    "${ab:-1}${ab-2}": "1",
    "${a:-1}${a-2}": "AA",
    "${z:+1}${z+2}": "",
    "${ab:+1}${ab+2}": "2",
    "${a:+1}${a+2}": "12",
    "${a:?x}${ab?x}": "A",
    "${z:-${y:-$a}b}": "Ab",
    "${z:-'}'\\}\"}\"}": "}}}",
    "a$ $": "a$ $",
}
"""By the table of `${}` forms in Docker's reference."""


@pytest.mark.parametrize("text", SUBSTITUTIONS)
def test_substitutions(text):
    assert expand(text, VARIABLES) == SUBSTITUTIONS[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$z", r"\$z is set by no ENV before, .*\$\{z:-default\}"),
        ("${z}", r"\$z is set by no ENV"),
        ("$1", r"\$1 is nothing that ENV can set; write \\\$"),
        ("${@}", r"\$@ is nothing"),
        ("${}", r"`\$\{` needs a name"),
        ("${a", r"of \$\{a…\} are understood"),
        ("${a:}", r"of \$\{a…\} are understood"),
        ("${a%x}", r"of \$\{a…\} are understood"),
        ("${z:-x", r"`\}` is missing"),
        ("${ab:?not empty}", "ab: not empty"),
        ("${z?}", "z: is not set"),
        ("'a", "a `'` is missing"),
        ('"a', 'a `"` is missing'),
    ],
)
def test_broken_words_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        expand(text, VARIABLES)

import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.text.visible import visible


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_no_control_character_is_left_and_nothing_else_is_changed(text):
    shown = visible(text)
    assert not any(unicodedata.category(each) == "Cc" and each not in "\t\n" for each in shown)
    assert visible(shown) == shown
    if not any(unicodedata.category(each) == "Cc" for each in text):
        assert shown == text


@given(st.text(alphabet=st.characters(max_codepoint=0x7F)))
def test_ascii_looks_as_cat_shows_it(text):
    assert visible(text) == subprocess.run(["cat", "-v"], input=text.encode(), capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "^[]0;title^G"),
        ("a\r\nb\tc", "a^M\nb\tc"),
        ("\x9b2J", "M-^[2J"),
        ("\x7f\0é€😀", "^?^@é€😀"),
        ("a\u202eb\ufeff", "a<U+202E>b<U+FEFF>"),
    ],
)
def test_examples(text, shown):
    assert visible(text) == shown

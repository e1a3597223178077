import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.text.visible import legible, visible


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
    [("\x1b]0;title\x07", "^[]0;title^G"), ("a\r\nb\tc", "a^M\nb\tc"), ("\x9b2J", "M-^[2J"), ("\x7f\0é€😀", "^?^@é€😀")],
)
def test_examples(text, shown):
    assert visible(text) == shown


def test_a_person_sees_marks_of_direction_and_what_has_no_width_and_an_agent_gets_them():
    family, reversed_, marked = "\U0001f469\u200d\U0001f467", "a\u202eb", "\ufeffa"
    assert [visible(text) for text in (family, reversed_, marked)] == [family, reversed_, marked]
    shown = ["\U0001f469<U+200D>\U0001f467", "a<U+202E>b", "<U+FEFF>a"]
    assert [legible(text) for text in (family, reversed_, marked)] == shown
    assert legible("\x1b[31m") == visible("\x1b[31m") == "^[[31m"

"""Bounded output: the same as cutting the whole, whatever the pieces."""

from hypothesis import given
from hypothesis import strategies as st

from t1x.sandbox.output import BoundedOutput
from t1x.text.visible import visible


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(2, 64))
def test_what_is_kept_does_not_depend_on_the_pieces(pieces, limit):
    whole = b"".join(pieces)
    output, at_once = BoundedOutput(limit), BoundedOutput(limit)
    for piece in pieces:
        output.add(piece)
    at_once.add(whole)
    assert output.text() == at_once.text()
    assert output.total == len(whole)
    assert output.truncated == (len(whole) > limit // 2 * 2)
    if not output.truncated:
        assert output.text() == visible(whole.decode("utf-8", "replace"))


@given(st.text(alphabet="aé€😀", min_size=1, max_size=200), st.integers(2, 64))
def test_a_cut_never_breaks_a_character(text, limit):
    output = BoundedOutput(limit)
    output.add(text.encode())
    shown = output.text()
    assert "\ufffd" not in shown
    if output.truncated:
        head, _, rest = shown.partition("\n[... ")
        tail = rest.partition(" ...]\n")[2]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head.encode()) > limit // 2 - 4
        assert len(tail.encode()) > limit // 2 - 4


def test_memory_is_bounded():
    output = BoundedOutput(1000)
    for _ in range(10_000):
        output.add(b"x" * 777)
    assert len(output._head) + len(output._tail) <= 2000
    assert output.text() == f"{'x' * 500}\n[... {7_770_000 - 1000} bytes cut ...]\n{'x' * 500}"


def test_what_only_a_person_has_to_see_reaches_the_agent_as_it_is():
    said = "a\u202eb\u200dc\ufeff"
    output = BoundedOutput(1000)
    output.add(said.encode())
    assert output.text() == said

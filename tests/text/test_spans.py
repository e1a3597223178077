"""Ids to text and back, with the character at which each id begins."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_templates import SPECIAL, TOKENIZERS, build
from promises import promise

from t1x.text.tokenizer import EncodedText

PADDED = 8
built = functools.cache(functools.partial(build, template="line_break", padded=PADDED))
NAMES = st.sampled_from(sorted(TOKENIZERS))
PIECES = [*SPECIAL, "ls", " ", "  a", "\n", "é", "😀", "\ufffd", "cat a.txt", "-", "\u0301"]
TEXTS = st.text(max_size=12) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def spoken(text: str) -> bool:
    """White space at the beginning of a text is lost where a tokenizer puts some in front, unless there is some already."""
    return not any(piece.startswith((" ", "\u2581")) for piece in _split(text))


def _split(text: str) -> list[str]:
    for token in SPECIAL:
        text = text.replace(token, "\0")
    return text.split("\0")


@promise
@given(NAMES, TEXTS)
def test_encoded_text_decodes_to_itself_with_the_same_beginnings(tokenizer, text):
    chat = built(tokenizer)
    encoded = chat.encode_spans(text)
    starts = encoded.starts.tolist()
    assert encoded.text == text
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)
    if tokenizer.startswith(("metaspace", "prepending")) and (not spoken(text) or "\u2581" in text or "\0" in text):
        return
    decoded = chat.decode_spans(encoded.ids)
    assert decoded.text == text
    assert decoded.starts.tolist() == starts


def slow_starts(chat, ids: list[int]) -> list[int]:
    """By decoding every prefix: an id begins where the text before it ends, or at the character that it continues."""
    whole = chat.decode_spans(ids).text
    starts = []
    for n in range(len(ids)):
        prefix = chat.decode_spans(ids[:n]).text
        starts.append(next((i for i, (a, b) in enumerate(zip(prefix, whole, strict=False)) if a != b), len(prefix)))
    return starts


@promise
@given(st.text(max_size=8).filter(lambda text: "\ufffd" not in text))
def test_splits_that_are_not_canonical_read_the_same(text):
    """Every character is encoded by itself; one that no id stands for takes an id a byte."""
    chat = built("byte_level")
    letters = [chat.encode(letter) for letter in text]
    ids = np.array([id_ for letter in letters for id_ in letter], np.int32)
    decoded = chat.decode_spans(ids)
    assert decoded.text == text
    assert decoded.starts.tolist() == [i for i, letter in enumerate(letters) for _ in letter] == slow_starts(chat, ids)


@promise
@given(NAMES, st.data())
def test_any_ids_read_as_the_library_reads_them(tokenizer, data):
    """What isn't UTF-8 has as many U+FFFD as the library has for it; an id that only the model has is nothing to it."""
    chat = built(tokenizer)
    library = TOKENIZERS[tokenizer]()
    special = {library.token_to_id(token) for token in SPECIAL}
    bytes_ = [id_ for id_ in range(chat.vocab_size) if id_ not in special and "\ufffd" in library.decode([id_])]
    some = st.integers(0, chat.vocab_size - 1).filter(lambda id_: id_ not in special)
    padded = st.integers(chat.vocab_size - PADDED, chat.vocab_size - 1)
    ids = data.draw(st.lists(some | padded | (st.sampled_from(bytes_) if bytes_ else some), max_size=8))
    decoded = chat.decode_spans(np.array(ids, np.int32))
    starts = decoded.starts.tolist()
    assert decoded.text == library.decode(ids, skip_special_tokens=False)
    assert starts == sorted(starts)
    assert all(0 <= start <= len(decoded.text) for start in starts)
    stop = chat.stop_ids[0]
    apart = chat.decode_spans(np.array([*ids, stop, *ids], np.int32))
    assert apart.text.startswith(decoded.text + "<|end|>")
    assert apart.starts[len(ids)] == len(decoded.text)


@pytest.mark.parametrize("tokenizer", sorted(TOKENIZERS))
def test_blank_ids_are_those_that_say_nothing(tokenizer):
    chat, library = built(tokenizer), TOKENIZERS[tokenizer]()
    letter = library.token_to_id("a")
    said = {id_: library.decode([letter, id_, letter], skip_special_tokens=False)[1:-1] for id_ in range(chat.vocab_size)}
    assert chat.blank_ids == {id_ for id_, text in said.items() if not text.strip()}
    padded = set(range(chat.vocab_size - PADDED, chat.vocab_size))
    assert padded < chat.blank_ids


@promise
@given(st.text(max_size=4), st.lists(st.integers(0, 4), max_size=6).map(sorted))
def test_where_ids_begin_and_end(text, starts):
    starts = [min(start, len(text)) for start in starts]
    encoded = EncodedText(text, np.zeros(len(starts), np.int32), np.array(starts, np.int32))
    begins = [*starts, len(text)]
    assert [encoded.start(i) for i in range(len(begins))] == begins
    due = [begins.index(at) if at in begins else None for at in range(len(text) + 1)]
    assert [encoded.id_at(at) for at in range(len(text) + 1)] == due
    assert encoded.ends().tolist() == [next((b for b in begins if b > start), len(text)) for start in starts]


@pytest.mark.parametrize("tokenizer", sorted(TOKENIZERS))
def test_an_id_that_only_the_model_has_changes_nothing_around_it(tokenizer):
    """It stands where the text goes on, inside a character of several ids too."""
    chat = built(tokenizer)
    ids, padded = chat.encode_spans("ls \u00e9<|end|>a"), chat.vocab_size - 1
    for at in range(len(ids.ids) + 1):
        decoded = chat.decode_spans(np.insert(ids.ids, at, padded))
        assert decoded.text == ids.text
        assert np.delete(decoded.starts, at).tolist() == ids.starts.tolist()
        assert chat.decode(decoded.ids) == chat.decode(ids.ids)
    assert chat.bytes_of(padded) == b""


def test_long_texts_take_time_in_proportion():
    """84,000 ids of which most aren't UTF-8: a decoder that looks back over what isn't complete yet would take minutes."""
    chat = built("byte_level")
    ids = np.random.default_rng(0).integers(5, chat.vocab_size, 84_000).astype(np.int32)
    decoded = chat.decode_spans(ids)
    assert decoded.text == TOKENIZERS["byte_level"]().decode(ids.tolist())
    assert len(decoded.starts) == len(ids)

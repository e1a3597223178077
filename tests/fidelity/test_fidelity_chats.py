"""Tokenizers and templates are what plain Python says they are: ids, texts, places, and the last answer's span."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import promise
from small_chats import LETTERS, SPECIAL, STOP, Style, chats, small_chat

text = st.lists(st.sampled_from([*LETTERS, "<think>", "</think>", "a b"]), max_size=8).map("".join)
conversations = st.lists(st.tuples(text, text), max_size=3).map(
    lambda turns: [("user", "ab a"), *(message for said, shown in turns for message in (("assistant", said), ("tool", shown)))]
)


@given(chats, conversations)
@promise
def test_prompts_are_rendered_and_encoded_as_in_plain_python(chat, messages):
    due, got = chat.prompt(messages), chat.tokenizer.prompt_renderer()(messages)
    assert got.encoded.text == due.encoded.text
    assert got.encoded.ids.tolist() == due.encoded.ids.tolist()
    assert got.encoded.starts.tolist() == due.encoded.starts.tolist()
    assert got.answer == due.answer


@given(chats, text, st.integers(0, 2**32))
@promise
def test_any_ids_read_as_in_plain_python(chat, text, seed):
    """Split at random, cut anywhere, with special tokens and bytes that are no character."""
    rng = random.Random(seed)
    ids = chat.split(text, rng)
    ids = [*ids[: rng.randint(0, len(ids))], rng.randrange(len(SPECIAL)), *chat.split(text, rng)]
    got = chat.tokenizer.decode_spans(np.array(ids, np.int32))
    assert got.text == chat.text(ids)
    assert got.ids.tolist() == ids
    assert chat.tokenizer.decode(np.array(ids, np.int32)) == chat.text(ids, specials=False)
    whole = chat.split(text, rng)
    raw = b"".join(chat.pieces[i] for i in whole)
    lead = int(chat.leads and raw.startswith(b" "))
    begins = [max(lead, sum(len(chat.pieces[i]) for i in whole[:at])) for at in range(len(whole))]
    starts = [len(raw[lead:begin].decode("utf-8", "ignore")) for begin in begins]
    assert chat.tokenizer.decode_spans(np.array(whole, np.int32)).starts.tolist() == starts


def test_a_space_in_bytes_that_are_no_text_is_not_the_tokenizers():
    """It reads as U+FFFD then, as the bytes beside it do, so that nothing is left to take away in front of the text."""
    chat = small_chat("always", 0, Style())
    ids = [chat.pieces.index(b" "), chat.pieces.index(b"\xc2")]
    assert chat.tokenizer.decode_spans(np.array(ids, np.int32)).text == chat.text(ids) == "\ufffd\ufffd"


@given(chats, text)
@promise
def test_plain_text_is_encoded_without_special_tokens(chat, text):
    assert chat.tokenizer.encode(text).tolist() == chat.encode(text)
    shown = text.removeprefix(" ") if chat.leads else text
    assert chat.text(chat.tokenizer.encode(text + "<|end|>").tolist()) == shown + "<|end|>"
    assert STOP not in chat.tokenizer.encode(text + "<|end|>").tolist()


@given(chats)
@settings(max_examples=30, deadline=None)
def test_ids_of_white_space_are_those_whose_text_is_blank(chat):
    assert chat.tokenizer.stop_ids == (STOP,)
    assert chat.tokenizer.blank_ids == {i for i, piece in enumerate(chat.pieces) if not piece.decode(errors="replace").strip()}

"""A conversation's prompts are the same whatever was rendered before; that they are right is `test_increments.py`'s."""

import functools

from hypothesis import given
from hypothesis import strategies as st
from own_templates import HALVES, SPECIAL, TEMPLATES, TOKENIZERS, build
from promises import promise
from tokenizers import AddedToken

from t1x.text.chat import TemplatedTokenizer
from t1x.text.encoder import TextEncoder
from t1x.text.prompt_renderer import PromptRenderer
from t1x.text.special_tokens import SpecialTokens
from t1x.text.tokenizer import EncodedText


@functools.cache
def built(tokenizer: str, template: str) -> TemplatedTokenizer:
    """`eats_space` has a special token that takes the white space beside it."""
    if tokenizer != "eats_space":
        return build(tokenizer, template)
    library = TOKENIZERS["byte_level"]()
    library.add_special_tokens([AddedToken("<|end|>", special=True, lstrip=True, rstrip=True)])
    return TemplatedTokenizer(library, TEMPLATES.get(template, template), stop_token="<|end|>")


PARTS = ["ls", " ", "é", "\n", "<think>x</think>", "|end|>", "<|en", "\U00100000", "\U00100010", "\U00100011", *SPECIAL]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=4).map("".join)
TURN = st.tuples(TEXTS, st.sampled_from(["tool", "user"]), TEXTS)
CHANGES = st.lists(st.tuples(st.sampled_from(["grow", "grow", "grow", "compact", "rewrite"]), TURN), min_size=2, max_size=6)


def equal(one, other):
    a, b = one.encoded, other.encoded
    return (a.text, a.ids.tolist(), a.starts.tolist(), one.answer) == (b.text, b.ids.tolist(), b.starts.tolist(), other.answer)


@promise
@given(
    st.sampled_from(["byte_level", "metaspace_first", "eats_space"]),
    st.sampled_from([*sorted(set(TEMPLATES) - {"alternates"}), HALVES]),
    TEXTS,
    CHANGES,
)
def test_a_prompt_is_that_of_the_conversation_by_itself(tokenizer, template, instruction, changes):
    chat = built(tokenizer, template)
    render, turns = chat.prompt_renderer(), []
    for change, (answer, role, seen) in changes:
        if change == "grow" or not turns:
            turns.append([("assistant", answer), (role, seen)])
        elif change == "compact":
            instruction, turns = instruction + answer, turns[-1:]
        else:
            turns[0] = [("assistant", answer), (role, seen)]
        messages = [("user", instruction), *(message for turn in turns for message in turn)]
        rendered = render(messages)
        assert equal(rendered, chat.prompt_renderer()(messages))
        assert equal(rendered, render(messages))


def test_white_space_that_a_token_takes_may_go_on_where_texts_part():
    chat = built("eats_space", "next_role_stops")
    render = chat.prompt_renderer()
    for seen in ("x", " \n", " \n \n\nx", " x", " \n\ny", ""):
        messages = [("user", "go"), ("assistant", "ls"), ("tool", seen), ("assistant", "b"), ("tool", seen)]
        assert equal(render(messages), chat.prompt_renderer()(messages))


class Counted(TextEncoder):
    """Counts what it encodes."""

    texts: list[str]

    def piece(self, text: str, special: int | None, *, first: bool) -> EncodedText:
        if special is None:
            self.texts.append(text)
        return super().piece(text, special, first=first)


def test_a_turn_encodes_what_is_new_and_what_went_is_forgotten():
    library = TOKENIZERS["byte_level"]()
    library.post_processor, library.encode_special_tokens = None, True
    encoder, rendered = Counted(library), []

    def template(messages):
        rendered.append(messages)
        return "".join(f"<|{role}|>{content}<|end|>" for role, content in messages) + "<|assistant|>"

    render, messages = PromptRenderer(template, SpecialTokens(library), encoder, ""), [("user", "go")]
    for turn in range(5):
        encoder.texts, rendered[:] = [], []
        prompt = render(messages)
        assert encoder.texts == ([f"ls {turn - 1}", f"out {turn - 1}"] if turn else ["go"])
        assert len(rendered) == (2 if turn else 1), "what was before the answer is the prompt before"
        messages = [*messages, ("assistant", f"ls {turn}"), ("tool", f"out {turn}")]
    render([("user", "other")])
    encoder.texts = []
    assert equal(render(messages[:-2]), prompt)
    assert encoder.texts == [content for _, content in messages[:-2]]

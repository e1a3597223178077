"""Prompts grown by increments, against transformers' rendering and the tokenizers library's encoding of the whole conversation."""

import functools

import numpy as np
import transformers
from hypothesis import given
from hypothesis import strategies as st
from own_templates import HALVES, SPECIAL, TEMPLATES, TOKENIZERS, build
from promises import promise
from tokenizers import Tokenizer

from t1x.text.chat import TemplatedTokenizer

built = functools.cache(build)
ANSWERS = st.lists(st.sampled_from(["ls", "cat", "a.txt", "echo", "-l"]), min_size=1, max_size=3).map(" ".join)
TEXTS = st.text(alphabet=st.characters(exclude_characters="<>|[]", exclude_categories=("Cs", "Co")), max_size=12)
TURNS = st.lists(st.tuples(ANSWERS, TEXTS), min_size=1, max_size=3)


@functools.cache
def library(tokenizer: str) -> Tokenizer:
    return TOKENIZERS[tokenizer]()


@functools.cache
def renderer() -> transformers.PreTrainedTokenizerFast:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=TOKENIZERS["byte_level"]())


def whole(tokenizer: str, template: str, messages: list[tuple[str, str]]) -> tuple[str, np.ndarray]:
    """The text and the ids of a prompt that is rendered and encoded at once."""
    told = [{"role": role, "content": content} for role, content in messages]
    text = renderer().apply_chat_template(told, chat_template=TEMPLATES[template], tokenize=False, add_generation_prompt=True)
    return text, np.array(library(tokenizer).encode(text, add_special_tokens=False).ids, np.int32)


def observer(chat: TemplatedTokenizer) -> str:
    return chat.quirks.observation_role


@promise
@given(st.sampled_from(sorted(TOKENIZERS)), st.sampled_from(sorted(TEMPLATES)), TEXTS, TURNS)
def test_an_increment_is_what_the_whole_conversation_has_behind_the_answer(tokenizer, template, instruction, turns):
    chat = built(tokenizer, template)
    messages = [("user", instruction)]
    stream = whole(tokenizer, template, messages)[1]
    assert chat.first_prompt(instruction).tolist() == stream.tolist()
    for turn, (answer, observation) in enumerate(turns):
        messages += [("assistant", answer), (observer(chat), observation)]
        _, prompt = whole(tokenizer, template, messages)
        glue = chat.glue(observation, turn)
        before, closing, behind = prompt[: -len(glue) - 1], prompt[-len(glue) - 1], prompt[-len(glue) :]
        assert behind.tolist() == glue.tolist()
        assert closing == library(tokenizer).token_to_id(chat.quirks.closing_token)
        assert library(tokenizer).decode(before.tolist()).endswith(answer)
        if not chat.quirks.prompt_only:  # history keeps what was shown: grown and rendered at once are the same
            assert before[: len(stream)].tolist() == stream.tolist()
            stream = np.concatenate([stream, before[len(stream) :], [closing], glue])


@promise
@given(st.sampled_from(sorted(TOKENIZERS)), st.sampled_from(sorted(TEMPLATES)), TEXTS, TURNS)
def test_a_rendered_prompt_is_the_librarys_and_knows_where_the_answer_stands(tokenizer, template, instruction, turns):
    chat = built(tokenizer, template)
    messages = [("user", instruction)]
    assert chat.prompt_renderer()(messages).answer is None
    for answer, observation in turns:
        messages += [("assistant", answer), ("tool", observation)]
    told = [(observer(chat) if role == "tool" else role, content) for role, content in messages]
    text, ids = whole(tokenizer, template, told)
    rendered = chat.prompt_renderer()(messages)
    assert rendered.encoded.text == text
    assert rendered.encoded.ids.tolist() == ids.tolist()
    assert chat.encode_spans(text).ids.tolist() == ids.tolist()
    assert chat.render(messages, generation_prompt=True).tolist() == ids.tolist()
    begin, end = rendered.answer
    assert text[begin:end].removeprefix(chat.quirks.history_only) == turns[-1][0]
    closing = text[end:].lstrip().startswith(chat.quirks.closing_token)
    assert closing, "what follows is the token that ends an answer"


PARTS = [*SPECIAL, "|end|>", ">", "<", "<|en", "end", "user", "|", "\U00100000", "\U00100010", " ", "ls", "é"]
SPELLED = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)


@promise
@given(st.sampled_from(sorted(TOKENIZERS)), st.sampled_from([*TEMPLATES, HALVES]), SPELLED, SPELLED, SPELLED)
def test_contents_that_spell_special_tokens_are_plain_text(tokenizer, template, instruction, answer, observation):
    chat = built(tokenizer, template)
    special = {library(tokenizer).token_to_id(token) for token in SPECIAL}

    def specials(ids):
        return [id_ for id_ in ids.tolist() if id_ in special]

    assert specials(chat.first_prompt(instruction)) == specials(chat.first_prompt("x"))
    assert specials(chat.glue(observation)) == specials(chat.glue("x"))
    rendered = chat.prompt_renderer()([("user", instruction), ("assistant", answer), ("tool", observation)])
    plain = chat.prompt_renderer()([("user", "x"), ("assistant", "x"), ("tool", "x")])
    assert specials(rendered.encoded.ids) == specials(plain.encoded.ids)
    assert observation.strip() in rendered.encoded.text
    begin, end = rendered.answer
    assert answer.strip() in rendered.encoded.text[begin:end]

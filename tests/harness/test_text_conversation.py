"""Prompts of messages, and what the token stitcher makes of them: both ask the same relations."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_templates import TEMPLATES, TOKENIZERS, build
from promises import promise

from t1x.engine.protocol import Completion
from t1x.harness.text_conversation import TextConversation
from t1x.text.chat import bundled
from t1x.trajectory.audit import audit
from t1x.trajectory.edit import Bounds
from t1x.trajectory.records import Boundary, Turn
from t1x.trajectory.stitcher import TokenStitcher

built = functools.cache(functools.partial(build, padded=8))
LINE_BREAK_BEFORE_STOP = """{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}
{{- '\n' if m.role == 'assistant' }}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def completed(prompt, ids):
    ids = np.array(ids, np.int32)
    rows = np.zeros((len(prompt.ids) + len(ids) - 1, 0, 0), np.uint8)
    return Completion(ids, np.full(len(ids), -1, np.float32), rows, 0, "stop", 0)


def played(chat, answers, *, instruction="do it", longest=10**6, seen="ok"):
    """(turns, trajectories, texts of the streams) of a dialogue whose answers are ids; nothing is announced but what has to be."""
    conversation = TextConversation(
        chat, instruction, role="tool", longest=longest, kept_turns=1, summary=lambda commands: f"Run: {commands}"
    )
    stitcher, turns = TokenStitcher().build(chat, None), []
    for index, ids in enumerate(answers):
        prompt = conversation.prompt()
        done = completed(prompt, ids)
        turns.append(Turn(index, prompt.ids, done, 1.0, prompt.restarted, prompt.rendered, prompt.placeholder_tokens))
        stitcher.add(turns[-1])
        assert len(stitcher.finish()[-1].token_ids) == prompt.stream_tokens + len(ids)
        conversation.add(done, seen)
    trajectories = stitcher.finish()
    assert audit(turns, trajectories).violations == 0
    return turns, trajectories, [chat.decode_spans(each.token_ids).text for each in trajectories]


def spelled(chat, text):
    """In ids of single bytes."""
    return [int(chat.encode("[")[-1]) - ord("[") + byte for byte in text.encode()]


def test_an_answer_whose_first_id_stands_in_the_generation_prompt():
    """`▁a` begins `▁assistant` too, and all that follows it is white space."""
    chat = built("metaspace_always", "line_break")
    (first,) = chat.encode("a")
    ids = [first, *spelled(chat, " \n"), *chat.stop_ids]
    _, (stream,), (text,) = played(chat, [ids, chat.stop_ids])
    assert stream.boundaries == (Boundary.RETOKENIZED,)
    context = "<|end|>\n<|user|>tool\nok<|end|>\n<|user|>assistant\n"
    assert text == f"<|user|>user\ndo it<|end|>\n<|user|>assistant\n a \n{context}<|end|>"


@pytest.mark.parametrize("space", ["\u00a0", "\u3000"])
def test_white_space_of_several_ids_is_white_space(space):
    """The instruction has it too, and no message but the last ends with the stop token."""
    chat = built("metaspace_never", "closes_otherwise")
    ids = [*spelled(chat, space), *chat.stop_ids]
    _, (stream,), (text,) = played(chat, [ids, chat.stop_ids], instruction=f"cat{space}a b")
    assert stream.boundaries == (Boundary.EDGE,)
    assert text == f"<|user|>cat{space}a b<|pad|><|assistant|>{space}<|end|><|pad|><|tool|>ok<|pad|><|assistant|><|end|>"


@pytest.mark.parametrize("space", ["", " ", "\u00a0"])
def test_ids_that_stand_for_nothing_are_left_out_as_white_space_is(space):
    chat = built("byte_level", "line_break")
    nothing = chat.vocab_size - 1
    ids = [*chat.encode("ls").tolist(), nothing, *chat.encode(space).tolist(), nothing, *chat.stop_ids]
    _, (stream,), _ = played(chat, [ids, chat.stop_ids])
    assert stream.boundaries == (Boundary.EDGE,)
    assert np.count_nonzero(stream.token_ids == nothing) == 2


def test_white_space_where_history_has_other_white_space_is_told():
    by_bytes, by_letters = (built(name, "begins_once") for name in ("metaspace_first", "byte_level"))
    for chat, said in ((by_bytes, spelled(by_bytes, "\u3000")), (by_letters, by_letters.encode("\n").tolist())):
        turns, streams, _ = played(chat, [[*said, *chat.stop_ids], chat.stop_ids])
        assert turns[1].restarted
        assert streams[1].boundaries == (Boundary.RESTART,)


def test_a_template_with_white_space_before_its_stop_token():
    chat = built("byte_level", LINE_BREAK_BEFORE_STOP)
    ids = [*chat.encode("ls").tolist(), *chat.stop_ids]
    turns, (stream,), (text,) = played(chat, [ids, ids])
    assert turns[1].rendered.encoded.text == "<|user|>do it<|end|><|assistant|>ls\n<|end|><|tool|>ok<|end|><|assistant|>"
    assert text == "<|user|>do it<|end|><|assistant|>ls<|end|><|tool|>ok<|end|><|assistant|>ls<|end|>"
    assert stream.boundaries == (Boundary.EDGE,)
    assert stream.substituted_rows == (), "the second turn consumed the stop token, and captured its row"


def test_the_harness_takes_what_the_stitcher_takes():
    assert Bounds() == Bounds(TokenStitcher().suffix_ids, TokenStitcher().dropped_ids)


@st.composite
def dialogues(draw):
    chat = draw(st.just(bundled()) | st.builds(built, st.sampled_from(sorted(TOKENIZERS)), st.sampled_from(sorted(TEMPLATES))))
    texts = st.sampled_from(["a", "ls", " ", "\n", "\u00a0", "é", "<|end|>", "<think>\nx\n</think>\n\n", "assistant", ""])
    ids = (st.integers(0, chat.vocab_size - 1) | st.integers(chat.vocab_size - 9, chat.vocab_size - 1)).map(
        lambda id_: [id_]
    ) | texts.map(lambda text: chat.encode(text).tolist())
    said = st.lists(ids, max_size=4).map(lambda parts: [id_ for part in parts for id_ in part if id_ not in chat.stop_ids])
    ends = st.sampled_from([[*chat.stop_ids], [*chat.stop_ids], []])
    return chat, draw(st.lists(st.builds(list.__add__, said, ends), min_size=2, max_size=4))


@promise
@given(dialogues(), st.sampled_from([60, 10**6]), st.sampled_from(["", "a b", "\u00a0\n"]))
def test_nothing_is_refused_and_the_sample_is_as_long_as_the_harness_says(dialogue, longest, seen):
    chat, answers = dialogue
    turns, streams, _ = played(chat, answers, longest=longest, seen=seen)
    told = [turn.restarted for turn in turns]
    cases = [case for stream in streams for case in stream.boundaries]
    assert all(told[1 + i] for i, case in enumerate(cases) if case is Boundary.RESTART)

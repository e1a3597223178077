"""Relations between a turn and the next prompt, one by one; what the streams then hold is in test_stitching_cases.py."""

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from toy_text import BY_NAME, TOY, ToyTokenizer, ids, turn

from t1x.text.tokenizer import EncodedText, RenderedPrompt
from t1x.trajectory.boundary import edge, exact, retokenized, shared_prefix
from t1x.trajectory.edit import Bounds, Edit
from t1x.trajectory.records import Boundary

BOUNDS = Bounds(suffix_ids=96, dropped_ids=16)


def test_a_prompt_is_exact_where_it_begins_with_all_of_the_turn_before():
    before = turn(0, "<u> a <a>", "ls <e>")
    assert exact(before, ids("<u> a <a> ls <e> <t> b")) == Edit(Boundary.EXACT, follow=5, captured=True)
    assert exact(before, ids("<u> a <a> ls <e>")) == Edit(Boundary.EXACT, follow=5, captured=True)
    assert exact(before, ids("<u> a <a> ls")) is None
    assert exact(before, ids("<u> a <a> ls <x> <t> b")) is None
    assert exact(before, ids("<u> a")) is None


@pytest.mark.parametrize(
    ("prompt", "shared"), [("<u> a <a> ls <e> b", 5), ("<u> a <a> ls b", 4), ("<u> a b", 2), ("<u>", 1), ("b", 0)]
)
def test_what_a_turn_and_a_prompt_share_reaches_into_the_answer(prompt, shared):
    assert shared_prefix(turn(0, "<u> a <a>", "ls <e>"), ids(prompt)) == shared


EDGES = [
    # p_i, a_i, p_{i+1}, (s, u, skipped, follow, captured)
    ("a think block", "<u> a <a> <think> // </think> //", "ls <e>", "<u> a <a> ls <e> <t> b <a>", (4, 0, 0, 5, True)),
    ("a closing id that the template drops", "<u> a <a>", "ls <e>", "<u> a <a> ls <t> b <a>", (0, 1, 0, 4, False)),
    ("white space trimmed before the template's stop id", "<u> a <a>", "ls / <e>", "<u> a <a> ls <e> <t> b", (0, 2, 1, 5, True)),
    ("another stop id", "<u> a <a>", "ls <x>", "<u> a <a> ls <e> <t> b", (0, 1, 0, 4, False)),
    ("the template's line break before its stop id", "<u> <a>", "ls <e>", "<u> <a> ls / <e> <t>", (0, 1, 2, 5, True)),
    ("other white space before the stop id", "<u> <a>", "a / <e>", "<u> <a> a _ / <e> <t>", (0, 2, 3, 6, True)),
    ("a letter before the stop id in history", "<u> <a>", "ls <e>", "<u> <a> ls / b <e> <t>", (0, 1, 0, 3, False)),
    ("the longest repetition", "<u> <a>", "ls _ / /", "<u> <a> ls / / <t>", (0, 3, 2, 5, True)),
    ("an answer that was cut off", "<u> a <a> <think>", "ls", "<u> a <a> ls <e> <t> b", (1, 0, 0, 4, True)),
    ("nothing sampled", "<u> a <a> <think>", "", "<u> a <a> <t> b", (1, 0, 0, 3, False)),
    (
        "a repeated short command",
        "<u> <a> ls <e> <t> <a> <think>",
        "ls <e>",
        "<u> <a> ls <e> <t> <a> ls <e> <t>",
        (1, 0, 0, 8, True),
    ),
    ("the smallest s, then the smallest u", "<u> a a a", "a b / <e>", "<u> a a a b / <e> <t>", (1, 0, 0, 7, True)),
    ("the smallest s, though a larger one drops nothing", "<u> a /", "a / a /", "<u> a / a / a b", (0, 1, 0, 6, False)),
    ("the smallest s, though a larger one drops less", "<u> <a> / a", "/ <e>", "<u> <a> / a <e> <t>", (0, 2, 1, 5, True)),
    ("the smallest of two s that fit", "<u> a _", "a _ a _ _", "<u> a _ a _ a <t>", (0, 2, 0, 6, False)),
    (
        "white space that stands turns back too",
        "<u> a <a> _ <e> <t> a <a> <think>",
        "_ <e>",
        "<u> a <a> _ <e> <t> a <a> <e> <t> b <a>",
        (1, 2, 1, 9, True),
    ),
    ("all of the answer dropped", "<u> <a>", "/ <e>", "<u> <a> <e> <t>", (0, 2, 1, 3, True)),
]


@pytest.mark.parametrize(("history", "answer", "prompt", "expected"), [case[1:] for case in EDGES], ids=[case[0] for case in EDGES])
def test_an_edge_leaves_out_the_templates_suffix_and_what_says_nothing(history, answer, prompt, expected):
    suffix, dropped, skipped, follow, captured = expected
    found = edge(turn(0, history, answer), turn(1, prompt, ""), TOY, BOUNDS)
    assert found == Edit(Boundary.EDGE, follow, captured, suffix, dropped, skipped)


NOT_EDGES = [
    ("a letter dropped", "<u> a <a>", "ls a", "<u> a <a> ls <e>"),
    ("another first id", "<u> a <a>", "ls <e>", "<u> b <a> ls <e>"),
    ("a letter before the stop id", "<u> a <a>", "ls b <e>", "<u> a <a> ls <e>"),
    ("a message left out", "<u> <a> ls <e> <t> a <e> <a>", "ls <e>", "<u> <a> ls <e> <t> b"),
    ("white space said, and another history", "<u> a <e> <a>", "_ <e>", "<u> b <e> <a> <e> <t>"),
    ("white space said, and another task, behind no stop id", "<u> a <a>", "_ <e>", "<u> b <a> <t>"),
    ("the same, where prompts end as the template's", "<u> a <a> <think>", "_ <e>", "<u> b <a> <t>"),
    ("nothing said, and another task", "<u> a <a>", "", "<u> b <a>"),
    ("a message left out, and the answer in its place", "<u> a <e> <a>", "ls <e>", "<u> ls <e> <t> b"),
    ("nothing in common", "a b", "<e>", "c <a>"),
    ("of the prompt nothing is left", "a b", "ls <e>", "ls <t>"),
    ("an answer that stands in the prompt itself", "<u> b <a> a a", "a / <e>", "<u> b <a> a a / <e> <t>"),
    ("an answer that stands in the generation prompt", "<u> b <a> <think>", "<a> / <e>", "<u> b <a> a <e> <t>"),
]


@pytest.mark.parametrize(("history", "answer", "prompt"), [case[1:] for case in NOT_EDGES], ids=[case[0] for case in NOT_EDGES])
def test_what_leaves_out_more_or_could_stand_elsewhere_is_no_edge(history, answer, prompt):
    assert edge(turn(0, history, answer), turn(1, prompt, ""), TOY, BOUNDS) is None


def test_an_edge_begins_at_the_answer_as_it_was_rendered():
    """A template closes answers with `<t>` instead of the stop id; `ls` stands a turn back too, and comes back as other ids."""
    first = turn(0, "<u> <a> ls <t> b <a>", "ls", text=True)
    second = turn(1, "<u> <a> ls <t> b <a> l s <t>", "", answered=(6, 8))
    assert edge(first, second, TOY, BOUNDS) is None
    assert agree(first, second) == Edit(Boundary.RETOKENIZED, follow=8, captured=False)


def test_an_edge_ends_behind_the_answer_as_it_was_rendered():
    """`ls / / <e>` comes back as `ls // <e>`: nothing of the answer is missing, it is the same text in other ids."""
    first = turn(0, "<u> <a>", "ls / / <e>", text=True)
    second = turn(1, "<u> <a> ls // <e> <t>", "", answered=(2, 4))
    assert edge(first, second, TOY, BOUNDS) is None
    assert agree(first, second) == Edit(Boundary.RETOKENIZED, follow=5, captured=True, skipped=1)
    trimmed = turn(1, "<u> <a> ls <e> <t>", "", answered=(2, 3))
    assert edge(first, trimmed, TOY, BOUNDS) == Edit(Boundary.EDGE, 4, True, dropped=3, skipped=1)
    cut_off = turn(0, "<u> <a> <think>", "ls", text=True)
    longer = turn(1, "<u> <a> ls // <e> <t>", "", answered=(2, 4))
    assert edge(cut_off, longer, TOY, BOUNDS) == Edit(Boundary.EDGE, 3, True, suffix=1), (
        "what follows is not in the place of dropped ids"
    )


def test_an_edge_leaves_out_no_more_than_its_bounds():
    suffix = turn(0, "<u> a <a> <think> // </think>", "ls <e>"), turn(1, "<u> a <a> ls <e> <t>", "")
    assert edge(*suffix, TOY, Bounds(3, 0)) is not None
    assert edge(*suffix, TOY, Bounds(2, 16)) is None
    dropped = turn(0, "<u> a <a>", "ls / / <e>"), turn(1, "<u> a <a> ls <t>", "")
    assert edge(*dropped, TOY, Bounds(0, 3)) is not None
    assert edge(*dropped, TOY, Bounds(96, 2)) is None


few = st.lists(st.sampled_from([BY_NAME[name] for name in ("a", "_", "/", "<e>")]), max_size=7)
"""So few ids that relations overlap."""


def plain_turn(history, answer):
    return dataclasses.replace(
        turn(0, "<u>", ""),
        prompt_ids=np.array(history, np.int32),
        completion=dataclasses.replace(turn(0, "<u>", "").completion, ids=np.array(answer, np.int32)),
    )


@given(few.filter(len), few, few, few, st.integers(0, 4), st.integers(0, 4), st.booleans(), st.sampled_from(["", "a", "/a", "no"]))
@promise
def test_edge_is_the_grid_searched_one_by_one(history, answer, rest, other, suffixes, drops, related, end):
    """Against every (s, u) tried in order, on prompts that are related and prompts that may be."""
    prompt = history[: max(0, len(history) - len(other))] + answer[: len(answer) - len(rest) % 3] + rest if related else other
    end = end.replace("/", "\n")
    found = edge(plain_turn(history, answer), plain_turn(prompt, []), ToyTokenizer(end), Bounds(suffixes, drops))
    expected, silent = None, {*TOY.stop_ids, *TOY.blank_ids}
    known = TOY.decode_spans(history).text.endswith(end)  # each id of it is a character
    part = next(
        (i for i, pair in enumerate(zip(history, prompt, strict=False)) if len({*pair}) > 1), min(len(history), len(prompt))
    )
    for s in range(min(suffixes, len(history), len(end) if known else 99) + 1):
        if not known and any(id_ in TOY.stop_ids for id_ in history[len(history) - s :]):
            break
        for u in range(min(drops, len(answer)) + 1):
            begin = len(history) - s
            start = history[:begin] + answer[: len(answer) - u]
            shown = any(at >= part and start[at] not in silent for at in range(begin, len(start)))
            missing = silent.issuperset(answer) and begin == part and (known or s == 0)
            if expected is None and begin and prompt[: len(start)] == start and (shown or missing):
                gone, behind = answer[len(answer) - u :], prompt[len(start) :]
                if silent.issuperset(gone):
                    k = max(k for k in range(u + 1) if behind[:k] == gone[u - k :])
                    if gone and gone[-1] in TOY.stop_ids and not k:
                        ends = [at for at in range(len(behind)) if behind[at] == gone[-1] and silent.issuperset(behind[:at])]
                        k = ends[0] + 1 if ends else 0
                    expected = (s, u, k, len(start) + k)
    assert (found and (found.suffix, found.dropped, found.skipped, found.follow)) == expected


def test_a_long_prompt_takes_milliseconds():
    """84,000 ids and the whole grid, where the answer's first id stands in every place that it may begin at."""
    history = np.full(84_000, BY_NAME["a"], np.int32)
    before = plain_turn(history, np.full(2_000, BY_NAME["a"]))
    after = plain_turn(np.concatenate([history[:-96], before.completion.ids[:-1], ids("b")]), [])
    started = time.process_time()
    for _ in range(10):
        assert edge(before, after, TOY, BOUNDS) is None
    assert (time.process_time() - started) / 10 < 0.02


def agree(first, second, bounds=BOUNDS):
    return retokenized(first, second, TOY, bounds)


def test_the_same_text_in_other_ids_goes_on_behind_the_stop_token():
    first = turn(0, "<u> a <a>", "l s <e>", text=True)
    second = turn(1, "<u> a <a> ls <e> <t> b <a>", "", answered=(3, 4))
    assert agree(first, second) == Edit(Boundary.RETOKENIZED, follow=5, captured=True, skipped=1)
    cut_off = turn(0, "<u> a <a>", "l s", text=True)
    assert agree(cut_off, second) == Edit(Boundary.RETOKENIZED, follow=4, captured=False)
    other_stop = turn(0, "<u> a <a>", "l s <x>", text=True)
    assert agree(other_stop, second) == Edit(Boundary.RETOKENIZED, follow=4, captured=False)


def test_retokenized_by_place_not_by_searching():
    """The same command stands before; the span that was rendered for the last message is the one that counts."""
    first = turn(0, "<u> <a> ls <e> <t> <a>", "l s <e>", text=True)
    second = "<u> <a> ls <e> <t> <a> ls <e> <t> <a>"
    assert agree(first, turn(1, second, "", answered=(6, 7))) == Edit(Boundary.RETOKENIZED, 8, True, skipped=1)
    assert "text before the answer differs" in str(agree(first, turn(1, second, "", answered=(2, 3))))


def test_retokenized_tolerates_white_space_at_the_end_of_the_answer_alone():
    second = turn(1, "<u> <a> ls <e> <t>", "", answered=(2, 3))
    assert isinstance(agree(turn(0, "<u> <a>", "l s / _ <e>", text=True), second), Edit)
    for answer in ("_ l s <e>", "l _ s <e>", "l s a <e>", "l <e>", "<e>"):
        assert "answer differs" in agree(turn(0, "<u> <a>", answer, text=True), second)
    longer = turn(1, "<u> <a> ls / <e> <t>", "", answered=(2, 4))
    assert "answer differs" in agree(turn(0, "<u> <a>", "l s <e>", text=True), longer)


def test_retokenized_tolerates_a_suffix_that_history_lacks():
    first = turn(0, "<u> <a> <think> //", "l s <e>", text=True)
    second = turn(1, "<u> <a> ls <e> <t>", "", answered=(2, 3))
    assert isinstance(agree(first, second, Bounds(2, 16)), Edit)
    assert "text before the answer differs" in agree(first, second, Bounds(1, 16))
    changed = turn(1, "<u> a <a> ls <e> <t>", "", answered=(3, 4))
    assert "text before the answer differs too, from character 3" in agree(first, changed)


@pytest.mark.parametrize(("answer", "again"), [("b c", "b c/"), ("b /", "b //")])
def test_an_id_that_straddles_the_answers_end(answer, again):
    """The answer's last character and the template's line break are one id."""
    first = turn(0, "<u> <a>", answer, text=True)
    spans = turn(1, f"<u> <a> {again} <t>", "", text=True)
    begin = len("<u><a>")
    second = dataclasses.replace(spans, rendered=dataclasses.replace(spans.rendered, answer=(begin, begin + 2)))
    assert agree(first, second) == "One id of the prompt stands for the end of the answer and for what follows it, at character 8"


class Bytes:
    """Every id is two bytes."""

    stop_ids: tuple[int, ...] = ()
    quirks = TOY.quirks

    def decode_spans(self, values):
        text = np.asarray(values, ">u2").tobytes().decode("utf-8", "replace")
        return EncodedText(text, np.asarray(values, np.int32), np.zeros(len(values), np.int32))


def test_an_id_that_straddles_the_answers_end_by_a_byte():
    """`xyz€`, 78 79 | 7a e2 | 82 ac: the third id begins with the character behind the answer, whose first byte the second has."""
    values = np.frombuffer("xyz€".encode(), ">u2").astype(np.int32)
    nothing = RenderedPrompt(EncodedText("", values[:1], np.zeros(1, np.int32)), None)
    before = dataclasses.replace(plain_turn(values[:1], np.frombuffer(b"xyz ", ">u2")), rendered=nothing)
    encoded = EncodedText("xyz€", values, np.array([0, 2, 3], np.int32))
    after = dataclasses.replace(before, prompt_ids=values, rendered=RenderedPrompt(encoded, (0, 3)))
    assert "One id of the prompt stands for the end" in retokenized(before, after, Bytes(), BOUNDS)


def test_retokenized_needs_rendered_texts():
    first, second = turn(0, "<u> <a>", "l s <e>"), turn(1, "<u> <a> ls <e> <t>", "", answered=(2, 3))
    assert "no rendered text" in agree(first, second)
    assert "no rendered text" in agree(second, dataclasses.replace(first, index=2))
    assert "no assistant message" in agree(turn(0, "<u> <a>", "l s <e>", text=True), turn(1, "<u> <a> ls <e> <t>", "", text=True))

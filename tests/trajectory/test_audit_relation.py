"""Whether a stream's label is the relation between two turns, worked by hand; on random trials it is in tests/fidelity."""

import dataclasses

import numpy as np
import pytest
from toy_text import LAYOUT, TOY, turn

from t1x.trajectory.audit import audit
from t1x.trajectory.audit_finding import Kind
from t1x.trajectory.records import Boundary
from t1x.trajectory.stitcher import TokenStitcher

EXACT, EDGE, RETOKENIZED, RESTART = Boundary


def stitched(turns):
    """Their only stream, which the auditor takes, and how turn 1 continues turn 0."""
    (stream,) = TokenStitcher().stitch("a trial", turns, TOY, LAYOUT)
    found = audit(turns, [stream], droppable=16)
    assert found.violations == 0, found.findings
    return stream, stream.boundaries[0]


def said(turns, label, droppable=16):
    """What the auditor says of another label."""
    stream, _ = stitched(turns)
    found = audit(turns, [dataclasses.replace(stream, boundaries=(label, *stream.boundaries[1:]))], droppable=droppable)
    assert found.wrong_labels == sum(finding.kind is Kind.BOUNDARY for finding in found.findings) == found.violations
    return [finding.detail for finding in found.findings if finding.kind is Kind.BOUNDARY]


AS_AN_EDGE_DOES = "retokenized, but its prompt repeats turn 0 id by id, as an edge does"
NOT_ID_BY_ID = "edge, but its prompt doesn't repeat turn 0 id by id"

RENDERED = {
    # what was sampled behind `<u> <a> <think>`, the next prompt, which of it is the answer, its label, what is said of the other
    "the same ids": ("ls <e>", "<u> <a> ls <e> <t>", (2, 3), EDGE, AS_AN_EDGE_DOES),
    "no stop id": ("ls <e>", "<u> <a> ls <t>", (2, 3), EDGE, AS_AN_EDGE_DOES),
    "white space and no stop id": ("ls / <e>", "<u> <a> ls <t>", (2, 3), EDGE, AS_AN_EDGE_DOES),
    "trimmed": ("ls / <e>", "<u> <a> ls <e> <t>", (2, 3), EDGE, AS_AN_EDGE_DOES),
    "cut off": ("ls", "<u> <a> ls <e> <t>", (2, 3), EDGE, AS_AN_EDGE_DOES),
    "nothing said": ("", "<u> <a> <e> <t>", (2, 2), EDGE, AS_AN_EDGE_DOES),
    "another split": ("l s <e>", "<u> <a> ls <e> <t>", (2, 3), RETOKENIZED, NOT_ID_BY_ID),
    "another split of its end": ("a ls <e>", "<u> <a> a l s <e> <t>", (2, 5), RETOKENIZED, NOT_ID_BY_ID),
    "white space split otherwise": ("ls / / <e>", "<u> <a> ls // <e> <t>", (2, 4), RETOKENIZED, NOT_ID_BY_ID),
    "a line break before the stop id": ("l s <e>", "<u> <a> ls / <e> <t>", (2, 3), RETOKENIZED, NOT_ID_BY_ID),
}


@pytest.mark.parametrize(("answer", "prompt", "answered", "label", "why"), RENDERED.values(), ids=RENDERED)
def test_a_label_is_the_relation_of_the_ids_where_texts_were_rendered(answer, prompt, answered, label, why):
    turns = [turn(0, "<u> <a> <think>", answer, text=True), turn(1, prompt, "la", answered=answered)]
    assert stitched(turns)[1] is label
    assert said(turns, RETOKENIZED if label is EDGE else EDGE) == [why]


def test_what_an_edge_may_drop_is_the_stitchers_to_say():
    """A stitcher whose edges drop nothing calls a missing stop id the same text in other ids."""
    turns = [turn(0, "<u> <a>", "ls <e>", text=True), turn(1, "<u> <a> ls <t>", "la", answered=(2, 3))]
    (stream,) = TokenStitcher(dropped_ids=0).stitch("a trial", turns, TOY, LAYOUT)
    assert stream.boundaries == (RETOKENIZED,)
    assert audit(turns, [stream]).violations == audit(turns, [stream], droppable=0).violations == 0
    assert said(turns, RETOKENIZED, droppable=1) == [AS_AN_EDGE_DOES]
    kept = [turn(0, "<u> <a> <think>", "ls", text=True), turn(1, "<u> <a> ls <t>", "la", answered=(2, 3))]
    assert said(kept, RETOKENIZED, droppable=0) == [AS_AN_EDGE_DOES], "it drops nothing"


def test_other_ids_need_texts_that_agree_before_the_answer():
    turns = [turn(0, "<u> a <a>", "ls <e>", text=True), turn(1, "<u> a <a> ls <t>", "la", answered=(3, 4))]
    bare = [turns[0], turn(1, "<u> a <a> ls <t>", "la")]
    assert said(bare, RETOKENIZED) == ["retokenized, but no rendered texts tell that they agree"]
    stream, _ = stitched(turns)
    relabelled = dataclasses.replace(stream, boundaries=(RETOKENIZED,))
    other = dataclasses.replace(turns[0], rendered=turn(0, "<u> b <a>", "", text=True).rendered)
    (finding,) = (each for each in audit([other, turns[1]], [relabelled]).findings if each.kind is Kind.BOUNDARY)
    assert finding.detail == "retokenized, but the text before its answer isn't that of turn 0"
    across = dataclasses.replace(turns[1], rendered=dataclasses.replace(turns[1].rendered, answer=(7, 8)))
    (finding,) = (each for each in audit([turns[0], across], [relabelled]).findings if each.kind is Kind.BOUNDARY)
    assert finding.detail.startswith("retokenized, but one id stands for the end of the answer and for what follows it")


def test_an_edge_that_lacks_a_letter_is_none():
    """`b` stands in the prompt, so that its text is known: it isn't white space."""
    turns = [turn(0, "<u> b <a>", "ls <e>", text=True), turn(1, "<u> b <a> ls <e> <t>", "la", answered=(3, 4))]
    stream, _ = stitched([turns[0], turn(1, "<u> b <a> ls <t>", "la", answered=(3, 4))])
    lacking = dataclasses.replace(turns[0], completion=turn(0, "<u> b <a>", "ls b <e>").completion)
    longer = dataclasses.replace(
        stream,
        token_ids=np.insert(stream.token_ids, 4, lacking.completion.ids[1]),
        loss_mask=np.insert(stream.loss_mask, 4, True),
        logprobs=np.insert(stream.logprobs, 4, lacking.completion.logprobs[1]),
        routed_experts=np.insert(stream.routed_experts, 4, stream.routed_experts[3], axis=0),
    )
    details = [each.detail for each in audit([lacking, turns[1]], [longer]).findings if each.kind is Kind.BOUNDARY]
    assert details == ["edge, but its prompt lacks 'b' of what turn 0 sampled"]


def test_an_edge_without_texts_reaches_to_where_the_prompts_part():
    turns = [turn(0, "<u> a <a>", "ls <e>"), turn(1, "<u> a <a> ls <t> b", "la")]
    stream, label = stitched(turns)
    assert label is EDGE
    rewritten = dataclasses.replace(turns[1], prompt_ids=turn(1, "<t> a <a> ls <t> b", "").prompt_ids)
    details = [each.detail for each in audit([turns[0], rewritten], [stream]).findings if each.kind is Kind.BOUNDARY]
    assert details == [NOT_ID_BY_ID]


def with_context(stream, at, id_):
    """One position of context more, in all streams."""
    more = {"token_ids": id_, "loss_mask": False, "logprobs": 0, "routed_experts": stream.routed_experts[at - 1]}
    longer = {name: np.insert(getattr(stream, name), at, value, axis=0) for name, value in more.items()}
    spans = (
        dataclasses.replace(span, stop=span.stop + (span.stop > at), start=span.start + (span.start >= at))
        for span in stream.versions
    )
    return dataclasses.replace(stream, **longer, versions=tuple(spans))


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        (
            [turn(0, "<u> <a>", "ls / <e>"), turn(1, "<u> <a> ls <e> <t>", "la")],
            "edge, but its stream goes on with id 3 of the prompt, and not with 4",
        ),
        (
            [turn(0, "<u> <a>", "l s <e>", text=True), turn(1, "<u> <a> ls <e> <t>", "la", answered=(2, 3))],
            "retokenized, but its stream goes on with id 3 of the prompt, and not with 4",
        ),
    ],
)
def test_a_stop_token_that_stands_twice_is_a_wrong_boundary(turns, says):
    """The template's own, where the stream has the one that was sampled."""
    stream, _ = stitched(turns)
    at = 2 + len(turns[0].completion.ids)
    doubled = with_context(stream, at, turns[1].prompt_ids[3])
    details = [each.detail for each in audit(turns, [doubled], droppable=16).findings if each.kind is Kind.BOUNDARY]
    assert details == [says]


def test_an_exact_turn_adds_all_that_stands_behind_the_turn_before():
    turns = [turn(0, "<u> <a>", "ls <e>"), turn(1, "<u> <a> ls <e> <t> b", "la")]
    stream, label = stitched(turns)
    assert label is EXACT
    keep = np.arange(len(stream.token_ids)) != 4
    shorter = dataclasses.replace(
        stream,
        **{name: getattr(stream, name)[keep] for name in ("token_ids", "loss_mask", "logprobs")},
        routed_experts=stream.routed_experts[keep[:-1]],
    )
    details = [each.detail for each in audit(turns, [shorter]).findings if each.kind is Kind.BOUNDARY]
    assert details == ["exact, but its stream goes on with id 5 of the prompt, and not with 4"]


def test_a_restart_was_announced_and_an_announced_turn_is_exact_or_a_restart():
    turns = [turn(0, "<u> a <a>", "ls <e>"), turn(1, "<u> b <a>", "a <e>", restarted=True)]
    streams = TokenStitcher().stitch("a trial", turns, TOY, LAYOUT)
    assert audit(turns, streams).violations == 0
    silent = dataclasses.replace(turns[1], restarted=False)
    assert [each.detail for each in audit([turns[0], silent], streams).findings] == ["restart, but nobody announced it"]
    again = [turns[0], turn(1, "<u> a <a> ls <e> <t>", "a <e>", restarted=True)]
    first, _ = streams
    (whole,) = TokenStitcher().stitch("a trial", again, TOY, LAYOUT)
    assert (whole.boundaries, audit(again, [whole]).violations) == ((EXACT,), 0)
    (second,) = TokenStitcher().stitch("a trial", [dataclasses.replace(again[1], index=0)], TOY, LAYOUT)
    details = [each.detail for each in audit(again, [first, dataclasses.replace(second, boundaries=(RESTART,))]).findings]
    assert details == ["restart, but its prompt begins with all of turn 0"]
    edged = [turns[0], turn(1, "<u> a <a> ls <t>", "la")]
    stream, _ = stitched(edged)
    announced = dataclasses.replace(edged[1], restarted=True)
    (finding,) = (each for each in audit([edged[0], announced], [stream]).findings if each.kind is Kind.BOUNDARY)
    assert finding.detail == "edge, but a restart was announced"


def test_around_a_turn_that_sampled_nothing_and_comes_back_in_other_ids_context_is_audited():
    """`l s` of turn 1 is `ls` in turn 2, and its answer is empty there: where turn 1 ends follows from where the rendered answer
    does."""
    turns = [
        turn(0, "<u> <a>", "ls <e>", text=True),
        turn(1, "<u> <a> l s <e> <t> b <a>", "", answered=(2, 4)),
        turn(2, "<u> <a> ls <e> <t> b <a> <e> <t> c <a>", "a", answered=(7, 7)),
    ]
    stream, _ = stitched(turns)
    assert stream.boundaries == (RETOKENIZED, RETOKENIZED)
    for at in np.flatnonzero(~stream.loss_mask).tolist():
        if at in stream.substituted_rows or stream.loss_mask[at + 1]:
            continue
        for name, value in (("routed_experts", 999), ("token_ids", 7)):
            array = getattr(stream, name).copy()
            array[at] = value
            found = audit(turns, [dataclasses.replace(stream, **{name: array})])
            assert at in {finding.position for finding in found.findings if finding.kind is Kind.ROW}, (name, at)

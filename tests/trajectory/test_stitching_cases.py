"""What the streams hold behind each kind of boundary, worked by hand. Row j of turn i's capture is 100 · i + j."""

import dataclasses

import numpy as np
import pytest
from toy_text import LAYOUT, TOY, ids, seen, stitched, turn

from t1x.trajectory.records import Boundary, VersionSpan
from t1x.trajectory.stitcher import ExactStitcher, RoutingRecordError, StitchingError, TokenFidelityError, TokenStitcher


def stitch(*turns, stitcher=None):
    return stitched(turns, stitcher or TokenStitcher())


def refused(error, *turns, stitcher=None):
    """The last turn is refused, and leaves the streams as they were."""
    worker = (stitcher or TokenStitcher()).build(TOY, LAYOUT)
    for each in turns[:-1]:
        worker.add(each)
    before = [seen(trajectory) for trajectory in worker.finish()]
    with pytest.raises(error) as caught:
        worker.add(turns[-1])
    assert [seen(trajectory) for trajectory in worker.finish()] == before
    return str(caught.value)


FIRST = turn(0, "<u> a <a>", "ls <e>")


def test_an_exact_turn_adds_what_stands_behind_the_turn_before():
    assert stitch(FIRST, turn(1, "<u> a <a> ls <e> <t> b <a>", "la <e>", start=4)) == [
        ("<u> a <a> *ls *<e> <t> b <a> *la *<e>", [0, 1, 2, 3, 104, 105, 106, 107, 108], ["exact"], [])
    ]


def test_edge_with_a_think_block_that_history_lacks():
    """Prompts end with `<a> <think> </think>`, and history has the answer behind `<a>`. The first turn stays as it was consumed."""
    first = turn(0, "<u> a <a> <think> </think>", "ls <e>")
    second = turn(1, "<u> a <a> ls <e> <t> b <a> <think> </think>", "la <e>", start=3)
    assert stitch(first, second) == [
        (
            "<u> a <a> <think> </think> *ls *<e> <t> b <a> <think> </think> *la *<e>",
            [0, 1, 2, 3, 4, 5, 104, 105, 106, 107, 108, 109, 110],
            ["edge"],
            [],
        )
    ]


def test_edge_where_the_template_drops_the_closing_id():
    """The stop id stays, its row is no turn's: it repeats the one before (Eq. 14)."""
    assert stitch(FIRST, turn(1, "<u> a <a> ls <t> b <a>", "la <e>", start=4)) == [
        ("<u> a <a> *ls *<e> <t> b <a> *la *<e>", [0, 1, 2, 3, 3, 104, 105, 106, 107], ["edge"], [4])
    ]


def test_edge_where_white_space_is_trimmed_has_no_stop_token_twice():
    """`ls / <e>` comes back as `ls <e>`: the stop id is there already, with the row that the second turn captured for it."""
    assert stitch(turn(0, "<u> <a>", "ls / <e>"), turn(1, "<u> <a> ls <e> <t> <a>", "la <e>", start=3)) == [
        ("<u> <a> *ls */ *<e> <t> <a> *la *<e>", [0, 1, 2, 3, 103, 104, 105, 106], ["edge"], [])
    ]


def test_edge_where_another_stop_id_was_sampled():
    assert stitch(turn(0, "<u> <a>", "ls <x>"), turn(1, "<u> <a> ls <e> <t> <a>", "la")) == [
        ("<u> <a> *ls *<x> <e> <t> <a> *la", [0, 1, 2, 2, 103, 104, 105], ["edge"], [3])
    ]


def test_what_follows_an_edge_is_compared_with_what_the_engine_saw():
    """The third prompt continues the second one exactly, though the stream has a think block and a stop id that neither has."""
    first = turn(0, "<u> <a> <think>", "ls <e>", version=3)
    second = turn(1, "<u> <a> ls <t> <a> <think>", "la <e>", start=2, version=4)
    third = turn(2, "<u> <a> ls <t> <a> <think> la <e> <t>", "ab <e>", start=7, version=4)
    assert stitch(first, second, third) == [
        (
            "<u> <a> <think> *ls *<e> <t> <a> <think> *la *<e> <t> *ab *<e>",
            [0, 1, 2, 3, 3, 103, 104, 105, 106, 207, 208, 209],
            ["edge", "exact"],
            [4],
        )
    ]
    worker = TokenStitcher().build(TOY, LAYOUT)
    for each in (first, second, third):
        worker.add(each)
    (trajectory,) = worker.finish()
    assert trajectory.versions == (VersionSpan(3, 5, 3), VersionSpan(8, 13, 4))
    assert trajectory.logprobs.tolist() == [0, 0, 0, -1, -1.125, 0, 0, 0, -2, -2.125, 0, -3, -3.125]
    assert trajectory.routed_experts.dtype == np.uint16


def test_rows_from_the_cache_behind_an_edge_are_those_of_the_engines_positions():
    """The third turn has rows from position 7 on, of its own positions: in the stream they stand two places later."""
    first = turn(0, "<u> <a> <think>", "ls <e>")
    second = turn(1, "<u> <a> ls <t> <a> <think>", "la <e>", start=2)
    behind = "<u> <a> ls <t> <a> <think> la <e> <t>"
    assert "begin at position 8, and no earlier turn captured those from 7 on" in refused(
        RoutingRecordError, first, second, turn(2, behind, "ab", start=8)
    )
    again = [0, 1, 102, 103, 104, 105, 106]
    whole = turn(2, behind, "ab", cached=7, rows=[*again, 207, 208])
    assert stitch(first, second, whole)[0][1] == [0, 1, 2, 3, 3, 103, 104, 105, 106, 207, 208]
    wrong = turn(2, behind, "ab", cached=7, rows=[*again[:3], 3, *again[4:], 207, 208])
    assert "position 3, layer 0: the cache served [3]" in refused(RoutingRecordError, first, second, wrong)


def test_a_row_that_was_computed_again_is_what_the_cache_serves_from_then_on():
    second = "<u> a <a> ls <e> <t>"
    evicted = turn(1, second, "la", start=0)
    third = second + " la <t>"
    rows = [*range(100, 106), 206, 207]
    assert stitch(FIRST, evicted, turn(2, third, "b", cached=6, rows=rows)) == [
        ("<u> a <a> *ls *<e> <t> *la <t> *b", [0, 1, 2, 3, 104, 105, 206, 207], ["exact", "exact"], [])
    ]
    stale = turn(2, third, "b", cached=6, rows=[0, *rows[1:]])
    assert "position 0, layer 0" in refused(RoutingRecordError, FIRST, evicted, stale)


def test_a_restart_opens_another_stream():
    restarted = turn(1, "<u> b <a>", "la <e>", start=1, restarted=True)
    assert stitch(FIRST, restarted) == [
        ("<u> a <a> *ls *<e>", [0, 1, 2, 3], [], []),
        ("<u> b <a> *la *<e>", [0, 101, 102, 103], ["restart"], []),
    ]
    refused(TokenFidelityError, FIRST, dataclasses.replace(restarted, restarted=False))


def test_restart_behind_an_edge_takes_cached_rows_from_the_engines_positions():
    """The prefix that the cache kept, `<u> <a> ls <t>`, is nowhere in the stream, which has `<u> <a> <think> ls <e> <t>`."""
    first = turn(0, "<u> <a> <think>", "ls <e>")
    second = turn(1, "<u> <a> ls <t> <a> <think>", "la <e>", start=2)
    third = turn(2, "<u> <a> ls <t> z <a>", "ab", start=4, restarted=True)
    assert stitch(first, second, third) == [
        ("<u> <a> <think> *ls *<e> <t> <a> <think> *la *<e>", [0, 1, 2, 3, 3, 103, 104, 105, 106], ["edge"], [4]),
        ("<u> <a> ls <t> z <a> *ab", [0, 1, 102, 103, 204, 205], ["restart"], []),
    ]
    too_much = turn(2, "<u> <a> ls <t> z <a>", "ab", start=5, restarted=True)
    assert "no earlier turn captured those from 4 on" in refused(RoutingRecordError, first, second, too_much)


def test_an_answer_that_comes_back_in_other_ids_stays_as_it_was_sampled():
    """`l s` comes back as `ls`: the stream keeps what was sampled, and goes on behind the stop token."""
    first = turn(0, "<u> <a>", "l s <e>", text=True)
    second = turn(1, "<u> <a> ls <e> <t> <a>", "la <e>", answered=(2, 3), start=2)
    assert stitch(first, second) == [("<u> <a> *l *s *<e> <t> <a> *la *<e>", [0, 1, 2, 3, 103, 104, 105, 106], ["retokenized"], [])]


def test_retokenized_answer_that_was_cut_off():
    """The template's stop token closes it, as context; the row of the last sampled id is no turn's."""
    first = turn(0, "<u> <a> <think>", "l s", text=True)
    second = turn(1, "<u> <a> ls <e> <t> <a> <think>", "l a", answered=(2, 3), start=2)
    third = turn(2, "<u> <a> ls <e> <t> <a> la <e> <t> <a> <think>", "a", answered=(6, 7), start=6)
    assert stitch(first, second, third) == [
        (
            "<u> <a> <think> *l *s <e> <t> <a> <think> *l *a <e> <t> <a> <think> *a",
            [0, 1, 2, 3, 3, 103, 104, 105, 106, 107, 107, 207, 208, 209, 210],
            ["retokenized", "retokenized"],
            [4, 10],
        )
    ]


def test_an_announced_turn_is_exact_or_a_restart():
    exact = turn(1, "<u> a <a> ls <e> <t>", "la", restarted=True)
    assert [chunk[2] for chunk in stitch(FIRST, exact)] == [["exact"]]
    edge = turn(1, "<u> a <a> ls <t>", "la", restarted=True)
    assert [chunk[2] for chunk in stitch(FIRST, edge)] == [[], ["restart"]]
    first = turn(0, "<u> <a>", "l s <e>", text=True)
    retokenized = turn(1, "<u> <a> ls <e> <t> <a>", "la <e>", answered=(2, 3), restarted=True)
    assert [chunk[2] for chunk in stitch(first, retokenized)] == [[], ["restart"]]


def test_a_compacted_history_is_no_edge_by_coincidence():
    """A short prompt and an answer of white space: what is left of them is a prefix of everything."""
    compacted = turn(1, "<u> b <a>", "la <e>", restarted=True)
    assert stitch(turn(0, "<u> a <a>", "/ <e>"), compacted) == [
        ("<u> a <a> */ *<e>", [0, 1, 2, 3], [], []),
        ("<u> b <a> *la *<e>", [100, 101, 102, 103], ["restart"], []),
    ]


def test_white_space_that_was_said_before_repeats_no_turns():
    """`_ <e>` comes back as `<e>`, and `_` stands in an earlier answer too, where p_1 and a_1 without its stop id would fit."""
    turns = [
        turn(0, "<u> a <a> <think>", "_ <e>"),
        turn(1, "<u> a <a> _ <e> <t> a <a> <think>", "_ <e>", start=3),
        turn(2, "<u> a <a> _ <e> <t> a <a> <e> <t> b <a> <think>", "la <e>", start=8),
    ]
    assert stitch(*turns) == [
        (
            "<u> a <a> <think> *_ *<e> <t> a <a> <think> *_ *<e> <t> b <a> <think> *la *<e>",
            [0, 1, 2, 3, 4, 104, 105, 106, 107, 108, 109, 208, 209, 210, 211, 212, 213],
            ["edge", "edge"],
            [],
        )
    ]


def test_an_id_that_straddles_the_answers_end_is_a_restart_or_an_error():
    first = turn(0, "<u> <a>", "b c", text=True)
    spans = turn(1, "<u> <a> b c/ <t>", "la", text=True)
    begin = len("<u><a>")
    second = dataclasses.replace(spans, rendered=dataclasses.replace(spans.rendered, answer=(begin, begin + 2)))
    assert "One id of the prompt stands for the end of the answer" in refused(TokenFidelityError, first, second)
    assert stitch(first, dataclasses.replace(second, restarted=True))[1] == (
        "<u> <a> b c/ <t> *la",
        [100, 101, 102, 103, 104],
        ["restart"],
        [],
    )


def test_a_row_that_predicts_a_sampled_token_is_never_put_in():
    """The second prompt is the first turn without its stop id, and goes on sampling: the stop id's row is no turn's."""
    error = refused(RoutingRecordError, FIRST, turn(1, "<u> a <a> ls", "la"))
    assert "position 4 has a row of no turn's capture, and it predicts a loss token" in error


def test_without_experts_the_same_is_a_prompt_that_does_not_continue():
    def bare(each):
        rows = np.zeros((len(each.completion.routing), 0, 0), np.uint8)
        return dataclasses.replace(each, completion=dataclasses.replace(each.completion, routing=rows))

    worker = TokenStitcher().build(TOY, None)
    worker.add(bare(FIRST))
    with pytest.raises(TokenFidelityError, match=r"turn 1: .* Nothing stands behind what it repeats"):
        worker.add(bare(turn(1, "<u> a <a> ls", "la")))
    worker.add(bare(turn(1, "<u> a <a> ls <t>", "la")))


def test_a_turn_that_sampled_nothing_adds_its_prompt():
    """A turn that sampled nothing adds its prompt, and the next one goes on from there."""
    empty = turn(1, "<u> a <a> ls <e> <t>", "", start=4)
    assert stitch(FIRST, empty) == [("<u> a <a> *ls *<e> <t>", [0, 1, 2, 3, 104], ["exact"], [])]
    third = turn(2, "<u> a <a> ls <e> <t> b <a>", "la", start=5)
    assert stitch(FIRST, empty, third) == [
        ("<u> a <a> *ls *<e> <t> b <a> *la", [0, 1, 2, 3, 104, 205, 206, 207], ["exact", "exact"], [])
    ]
    first = turn(0, "<u> <a> <think>", "")
    assert stitch(first) == [("<u> <a> <think>", [0, 1], [], [])]
    other = turn(1, "<u> <a> <t>", "la")  # the last id of the stream isn't in the prompt
    assert stitch(first, other) == [("<u> <a> <think> <t> *la", [0, 1, 1, 102], ["edge"], [2])]


def test_a_turn_that_adds_nothing():
    """An aborted turn whose prompt lacks the stop id: the stream's last id is not the engine's from then on."""
    aborted = turn(1, "<u> a <a> ls", "", start=3)
    assert stitch(FIRST, aborted) == [("<u> a <a> *ls *<e>", [0, 1, 2, 3], ["edge"], [])]
    third = turn(2, "<u> a <a> ls <t>", "la", start=3)
    assert stitch(FIRST, aborted, third) == [("<u> a <a> *ls *<e> <t> *la", [0, 1, 2, 3, 3, 204], ["edge", "exact"], [4])]
    refused(RoutingRecordError, FIRST, aborted, turn(2, "<u> a <a> ls", "la", start=3))


NOTHING_ADDED = {
    # what was sampled behind `<u> a <a>`, the prompts of the turns behind it, and the stream: none but the last samples anything
    "a stop id": ("ls <e>", ["<u> a <a> ls", "<u> a <a> ls <e> <t>"], "*ls *<e> <t>"),
    "over several turns": ("ls <e>", ["<u> a <a> ls", "<u> a <a> ls", "<u> a <a> ls", "<u> a <a> ls <e> <t>"], "*ls *<e> <t>"),
    "white space and a stop id": ("ls / <e>", ["<u> a <a> ls", "<u> a <a> ls / <e> <t>"], "*ls */ *<e> <t>"),
    "a stop id behind the template's line break": ("ls <e>", ["<u> a <a> ls", "<u> a <a> ls / <e> <t>"], "*ls *<e> <t>"),
    "white space": ("ls /", ["<u> a <a> ls", "<u> a <a> ls / <e> <t>"], "*ls */ <e> <t>"),
    "an empty answer, asked for again": ("<e>", ["<u> a <a>", "<u> a <a> <e> <t>"], "*<e> <t>"),
    "one stop id of two": ("ls <x>", ["<u> a <a> ls", "<u> a <a> ls <e> <t>"], "*ls *<x> <e> <t>"),
}


@pytest.mark.parametrize(("answer", "prompts", "stream"), NOTHING_ADDED.values(), ids=NOTHING_ADDED)
def test_what_stands_in_the_stream_is_not_repeated_behind_turns_that_added_nothing(answer, prompts, stream):
    """Each is a retry that was aborted: its prompt lacks the answer's end, which the prompt behind it has."""
    turns = [turn(0, "<u> a <a>", answer), *(turn(index, prompt, "") for index, prompt in enumerate(prompts[:-1], 1))]
    turns.append(turn(len(prompts), prompts[-1], "la"))
    ((shown, rows, cases, substituted),) = stitch(*turns)
    assert shown == f"<u> a <a> {stream} *la"
    assert cases == ["edge"] + ["exact"] * (len(prompts) - 1)
    last = 3 + len(ids(answer)) - 1
    own = ids(prompts[-1])
    if substituted:
        assert (substituted, rows[last]) == ([last], rows[last - 1]), "no prompt has it"
    else:
        assert rows[last] == 100 * len(prompts) + len(own) - len(shown.split()[last + 1 : -1]) - 1
    assert rows[last + 1 :] == [100 * len(prompts) + at for at in range(len(own) - len(rows[last + 1 :]), len(own))]


def test_the_same_behind_an_answer_in_other_ids():
    turns = [
        turn(0, "<u> <a>", "l s <e>", text=True),
        turn(1, "<u> <a> ls", "", answered=(2, 3)),
        turn(2, "<u> <a> ls / <e> <t>", "la"),
    ]
    assert stitch(*turns) == [("<u> <a> *l *s *<e> <t> *la", [0, 1, 2, 3, 204, 205], ["retokenized", "exact"], [])]


def test_an_announced_restart_repeats_nothing():
    turns = [turn(0, "<u> <a>", "ls <e>"), turn(1, "<u> <a> ls", ""), turn(2, "<e> <u> <a>", "la", restarted=True)]
    assert stitch(*turns)[1][0] == "<e> <u> <a> *la"


def test_the_error_shows_ids_and_texts_around_the_first_difference():
    first = turn(0, "<u> a <a>", "ls b <e>", text=True)
    second = turn(1, "<u> a <a> ls c <e> <t>", "la", answered=(3, 5))
    error = refused(TokenFidelityError, first, second)
    assert "turn 1: its prompt (7 ids) doesn't continue turn 0 (6 ids). They first differ at index 4" in error
    assert f"from 0 on turn 0 has {ids('<u> a <a> ls b <e>').tolist()} '<u>a<a>lsb<e>'" in error
    assert f"the prompt {ids('<u> a <a> ls c <e> <t>').tolist()} '<u>a<a>lsc<e><t>'" in error
    assert "The rendered answer differs too, from character 2: 'lsb' is 'lsc' in this prompt" in error
    assert "announces it with `restarted`" in error


def test_the_bounds_are_fields():
    edge = turn(1, "<u> a <a> ls <t>", "la")
    assert stitch(FIRST, edge, stitcher=TokenStitcher(dropped_ids=1))[0][2] == ["edge"]
    refused(TokenFidelityError, FIRST, edge, stitcher=TokenStitcher(dropped_ids=0))
    first, suffix = turn(0, "<u> a <a> <think>", "ls <e>"), turn(1, "<u> a <a> ls <e> <t>", "la")
    assert stitch(first, suffix, stitcher=TokenStitcher(suffix_ids=1))[0][2] == ["edge"]
    refused(TokenFidelityError, first, suffix, stitcher=TokenStitcher(suffix_ids=0))


def test_a_rendered_text_is_that_of_the_prompt():
    other = dataclasses.replace(turn(0, "<u> a <a>", "ls", text=True), rendered=turn(0, "<u> b <a>", "ls", text=True).rendered)
    assert "aren't those of its prompt" in refused(StitchingError, other)


def test_the_exact_stitcher_takes_nothing_else():
    exact = turn(1, "<u> a <a> ls <e> <t>", "la")
    assert stitch(FIRST, exact, stitcher=ExactStitcher()) == stitch(FIRST, exact)
    retokenized = turn(0, "<u> <a>", "l s <e>", text=True), turn(1, "<u> <a> ls <e> <t> <a>", "la <e>", answered=(2, 3))
    for first, second in (
        (FIRST, turn(1, "<u> a <a> ls <t>", "la")),
        (FIRST, turn(1, "<u> b", "la", restarted=True)),
        retokenized,
    ):
        assert [case for chunk in stitch(first, second) for case in chunk[2]] != [Boundary.EXACT]
        assert "ExactStitcher takes no other turn" in refused(TokenFidelityError, first, second, stitcher=ExactStitcher())

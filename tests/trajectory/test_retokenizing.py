"""The baseline: text encoded again. Examples worked by hand, then what holds for all."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from streams import plain
from toy_text import LAYOUT, PIECES, TOY, ids, seen, turn

from t1x.text.chat import bundled
from t1x.training.batch import Batch
from t1x.trajectory.records import VersionSpan
from t1x.trajectory.stitcher import RetokenizingStitcher, TokenStitcher


def stitch(*turns, stitcher=None):
    return (stitcher or RetokenizingStitcher()).stitch("a trial", turns, TOY, LAYOUT)


def read(trajectory):
    """Names with a star where they carry loss, rows, log-probabilities of those."""
    names, rows, _, _ = seen(trajectory)
    return names, rows, trajectory.logprobs[trajectory.loss_mask].tolist()


def test_ids_that_become_one_have_the_sum_and_the_last_ones_row():
    (trajectory,) = stitch(turn(0, "<u> <a>", "l s a <e>"))
    assert read(trajectory) == ("<u> <a> *ls *a *<e>", [0, 1, 3, 4], [-1 - 1.125, -1.25, -1.375])


def test_an_id_that_becomes_several_shares_its_log_probability():
    """`bc` sampled behind `a` is encoded as `ab` and `c`: a group of two and two, whose sum is shared evenly."""
    (trajectory,) = stitch(turn(0, "<u> <a>", "a bc <e>"))
    assert read(trajectory) == ("<u> <a> *ab *c *<e>", [0, 1, 3, 3], [-1.0625, -1.0625, -1.25])


def test_an_id_of_sampled_and_context_characters_is_context():
    """The sampled `a` and the harness's `b` become one id; its log-probability is nobody's."""
    first = turn(0, "<u> <a>", "c a")
    (trajectory,) = stitch(first, turn(1, "<u> <a> c a b <t>", "c"))
    assert read(trajectory) == ("<u> <a> *c ab <t> *c", [0, 1, 2, 104, 105], [-1, -2])


def test_sampled_ids_beside_such_an_id_share_the_groups_sum():
    """The sampled `a`, `bc` and the harness's `/` are encoded as `ab`, which was sampled, and `c/`, which wasn't."""
    (trajectory,) = stitch(turn(0, "<u> <a>", "a bc"), turn(1, "<u> <a> a bc / <t>", "z"))
    assert read(trajectory) == ("<u> <a> *ab c/ <t> *z", [0, 1, 103, 104, 105], [-2.125, -2])


def test_the_last_id_has_no_row_so_the_one_before_stands_in():
    """`a bc` ends the stream as `ab c`; the row of `ab` would be that of `bc`, the last sampled id, which has none."""
    (trajectory,) = stitch(turn(0, "<u> <a>", "a bc"))
    assert read(trajectory) == ("<u> <a> *ab *c", [0, 1, 2], [-1.0625, -1.0625])


def test_versions_and_substituted_rows_move_along():
    first = turn(0, "<u> <a>", "l s <e>", version=3)
    second = turn(1, "<u> <a> l s <t> <a>", "l s <e>", version=4)
    third = turn(2, "<u> <a> l s <t> <a> l s <e> <t>", "b", version=4)
    (faithful,) = stitch(first, second, third, stitcher=TokenStitcher())
    assert (faithful.substituted_rows, faithful.versions) == ((4,), (VersionSpan(2, 5, 3), VersionSpan(7, 12, 4)))
    (trajectory,) = stitch(first, second, third)
    assert seen(trajectory) == (
        "<u> <a> *ls *<e> <t> <a> *ls *<e> <t> *b",
        [0, 1, 3, 3, 104, 105, 107, 208, 209],
        ["edge", "exact"],
        [3],
    )
    assert trajectory.versions == (VersionSpan(2, 4, 3), VersionSpan(6, 10, 4))


def test_restarts_open_new_streams():
    first = turn(0, "<u> <a>", "l s <e>")
    one, two = stitch(first, turn(1, "<u> z", "l a", restarted=True))
    assert [read(one)[0], read(two)[0]] == ["<u> <a> *ls *<e>", "<u> z *la"]
    assert [seen(one)[2], seen(two)[2]] == [[], ["restart"]]


def test_a_stream_without_a_sampled_id_stays_as_it_is():
    (trajectory,) = stitch(turn(0, "<u> l s", ""))
    assert seen(trajectory) == ("<u> l s", [0, 1], [], [])


pieces = st.lists(st.sampled_from([name for name in range(len(PIECES)) if not PIECES[name].startswith("<")]), max_size=6)


@given(pieces, st.lists(st.tuples(pieces, pieces), min_size=1, max_size=4))
@promise
def test_text_is_kept_and_log_probabilities_add_up(opening, steps):
    """Against a slow count by characters."""
    history, turns = [*ids("<u>"), *opening], []
    for index, (answer, between) in enumerate(steps):
        turns.append(turn(index, "<u>", ""))
        n = len(history) + len(answer) - 1
        done = dataclasses.replace(
            turns[-1].completion,
            ids=np.array(answer, np.int32),
            logprobs=-1 - np.arange(len(answer), dtype=np.float32) / 8 - index,
            routing=(1 + np.arange(n, dtype=np.uint16)).reshape(-1, 1, 1),
        )
        turns[-1] = dataclasses.replace(turns[-1], prompt_ids=np.array(history, np.int32), completion=done)
        history = [*history, *answer, *between]
    (faithful,), (trajectory,) = stitch(*turns, stitcher=TokenStitcher()), stitch(*turns)
    text = TOY.decode_spans(faithful.token_ids).text
    assert TOY.decode_spans(trajectory.token_ids).text == text
    assert trajectory.token_ids.tolist() == TOY.encode_spans(text).ids.tolist() or not faithful.loss_mask.any()

    sampled_ids = enumerate(zip(faithful.token_ids, faithful.loss_mask, strict=True))
    by_character = [(sampled, k) for k, (id_, sampled) in sampled_ids for _ in PIECES[id_]]
    at, lost = 0, set()
    for j, id_ in enumerate(trajectory.token_ids):
        covered = by_character[at : at + len(PIECES[id_])]
        at += len(covered)
        assert trajectory.loss_mask[j] == all(sampled for sampled, _ in covered)
        if not trajectory.loss_mask[j]:
            lost |= {k for sampled, k in covered if sampled}
        if j < len(trajectory.token_ids) - 1:
            k = min(covered[-1][1], len(faithful.token_ids) - 2)
            assert trajectory.routed_experts[j] == faithful.routed_experts[k]
    if not lost:
        assert np.isclose(trajectory.logprobs.sum(), faithful.logprobs.sum(), rtol=1e-5)
    assert not trajectory.logprobs[~trajectory.loss_mask].any()
    assert (trajectory.logprobs[trajectory.loss_mask] < 0).all()
    if trajectory.loss_mask.any():
        Batch([trajectory], np.zeros(1), np.zeros(1, np.int64), seed=0)


def bundled_turn(*parts):
    """A turn of the bundled tokenizer that samples these ids."""
    tokenizer = bundled()
    said = np.array([id_ for part in parts for id_ in part], np.int32)
    prompt = tokenizer.first_prompt("list é日本 files")
    n = len(prompt) + len(said) - 1
    empty = turn(0, "<u>", "")
    done = dataclasses.replace(
        empty.completion,
        ids=said,
        logprobs=-np.arange(1, len(said) + 1, dtype=np.float32),
        routing=np.arange(n, dtype=np.uint16).reshape(-1, 1, 1),
    )
    return dataclasses.replace(empty, prompt_ids=prompt, completion=done)


def bundled_stream(stitcher, *parts):
    (trajectory,) = stitcher.stitch("a trial", [bundled_turn(*parts)], bundled(), LAYOUT)
    return trajectory


def test_where_encoding_changes_nothing_the_streams_are_the_token_stitchers():
    parts = bundled().encode("ls -la é日本 /tmp"), bundled().stop_ids
    assert plain([bundled_stream(RetokenizingStitcher(), *parts)]) == plain([bundled_stream(TokenStitcher(), *parts)])


def test_ids_that_encoding_leaves_keep_their_own():
    """`l` and `s` become `ls`; the two ids of `é`, which share a character, keep each its own log-probability and row."""
    encode = bundled().encode
    assert [len(encode(text)) for text in ("l", "s", "ls", " é")] == [1, 1, 1, 3]
    faithful = bundled_stream(TokenStitcher(), encode("l"), encode("s"), encode(" é"), bundled().stop_ids)
    trajectory = bundled_stream(RetokenizingStitcher(), encode("l"), encode("s"), encode(" é"), bundled().stop_ids)
    assert trajectory.token_ids[-5:].tolist() == [*encode("ls"), *encode(" é"), *bundled().stop_ids]
    assert trajectory.logprobs[-5:].tolist() == [-3, -3, -4, -5, -6]
    assert (trajectory.routed_experts[-4:] == faithful.routed_experts[-4:]).all()


def test_the_baseline_says_that_it_changes_what_was_sampled():
    assert not RetokenizingStitcher.faithful
    assert TokenStitcher.faithful
    assert RetokenizingStitcher().missing() == []

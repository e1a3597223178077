"""Stored trials as a reader looks at them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from random_turns import Plan, plans
from stored_trials import stitched

from t1x.text.chat import bundled
from t1x.trajectory.records import Boundary
from t1x.trajectory.shown import Chosen, shown
from t1x.trajectory.stored import StoredTrial


@promise
@given(plan=plans, seed=st.integers(0, 100))
def test_every_token_of_the_streams_is_shown_once(plan: list[Plan], seed: int) -> None:
    made = stitched(plan, seed)
    seen = shown(made, bundled())
    assert seen.divided
    for part in ("ids", "loss", "logprobs"):
        stream = {"ids": "token_ids", "loss": "loss_mask"}.get(part, part)
        told = np.concatenate([getattr(tokens, part) for turn in seen.turns for tokens in (turn.context, turn.sampled)])
        assert np.array_equal(told, np.concatenate([getattr(each, stream) for each in made.trajectories]))
    for turn, step in zip(seen.turns, plan, strict=True):
        assert np.array_equal(turn.sampled.ids, turn.turn.completion.ids)
        assert np.array_equal(turn.sampled.logprobs, turn.turn.completion.logprobs)
        assert turn.sampled.loss.all()
        assert not turn.context.loss.any()
        assert len(turn.sampled) == step.sampled
        if len(turn.sampled):
            assert turn.sampled.mean_logprob == pytest.approx(sum(turn.turn.completion.logprobs.tolist()) / step.sampled)
    assert [turn.boundary for turn in seen.turns] == [None, *(b for each in made.trajectories for b in each.boundaries)]


@promise
@given(plan=plans, seed=st.integers(0, 100))
def test_rows_captured_again_are_counted_one_by_one(plan: list[Plan], seed: int) -> None:
    made = stitched(plan, seed)
    recaptured, equal = 0, 0
    rows: dict[int, list] = {}
    agreement: dict[tuple[int, int], list[bool]] = {}
    chunk = -1
    for index, turn in enumerate(made.turns):
        if index == 0 or turn.restarted:
            rows, chunk = {}, chunk + 1
        done = turn.completion
        before = dict(rows)
        for row, experts in enumerate(done.routing.tolist()):
            position = done.routing_start + row
            if position in before:
                recaptured += 1
                equal += before[position] == experts
                pairs = zip(np.ravel(before[position]), np.ravel(experts), strict=True)
                agreement.setdefault((chunk, position), []).extend(a == b for a, b in pairs)
        for position, experts in enumerate(made.trajectories[chunk].routed_experts.tolist()):
            if position < len(turn.prompt_ids) + len(done.ids) - 1:
                rows[position] = experts
    seen = shown(made, bundled())
    assert (sum(turn.recaptured for turn in seen.turns), sum(turn.equal for turn in seen.turns)) == (recaptured, equal)
    told = np.concatenate([tokens.agreement for turn in seen.turns for tokens in (turn.context, turn.sampled)])
    lengths = [len(each.token_ids) for each in made.trajectories]
    starts = np.cumsum([0, *lengths])
    expected = np.full(sum(lengths), np.nan)
    for (stream, position), hits in agreement.items():
        expected[starts[stream] + position] = np.mean(hits)
    assert np.array_equal(told, expected, equal_nan=True)


def trial(text: str, answer: str) -> StoredTrial:
    """One turn of these texts, by the bundled tokenizer."""
    made = stitched([Plan(0, 1, False, 0.0, 0)])
    prompt, ids = (bundled().encode(each) for each in (text, answer))
    turn, n = made.turns[0], len(prompt) + len(ids)
    done = dataclasses.replace(
        turn.completion, ids=ids, logprobs=np.full(len(ids), -1, np.float32), routing=np.zeros((n - 1, 0, 0), np.uint8)
    )
    stream = dataclasses.replace(
        made.trajectories[0],
        token_ids=np.concatenate([prompt, ids]),
        loss_mask=np.arange(n) >= len(prompt),
        logprobs=np.where(np.arange(n) >= len(prompt), -1, 0).astype(np.float32),
        routed_experts=done.routing,
    )
    return dataclasses.replace(made, turns=(dataclasses.replace(turn, prompt_ids=prompt, completion=done),), trajectories=(stream,))


@pytest.mark.parametrize("text", ["ls notes", "naïve 日本 😀\n", "a\x1b[31mb"])
def test_texts_are_what_the_ids_stand_for(text: str) -> None:
    (turn,) = shown(trial("list it: ", text), bundled()).turns
    assert "".join(turn.context.texts) == "list it: "
    assert "".join(turn.sampled.texts) == text
    assert len(turn.sampled.texts) == len(turn.sampled.ids)
    assert b"".join([*turn.context.bytes, *turn.sampled.bytes]).decode() == f"list it: {text}"


def test_what_was_substituted_is_marked() -> None:
    made = stitched([Plan(3, 2, False, 0.0, 0), Plan(3, 2, False, 0.0, 0)])
    n = len(made.turns[0].prompt_ids)
    stream = dataclasses.replace(made.trajectories[0], substituted_rows=(1, n + 2))
    seen = shown(dataclasses.replace(made, trajectories=(stream,)), bundled())
    assert np.flatnonzero(seen.turns[0].context.substituted).tolist() == [1]
    assert np.flatnonzero(seen.turns[1].context.substituted).tolist() == [0]


def test_an_invalid_trial_is_shown_by_its_turns() -> None:
    made = dataclasses.replace(stitched([Plan(2, 3, False, 0.0, 0), Plan(4, 2, False, 0.0, 0)]), trajectories=())
    seen = shown(made, bundled())
    assert not seen.divided
    assert [len(turn.context) for turn in seen.turns] == [3, 4]
    assert np.array_equal(seen.turns[1].sampled.ids, made.turns[1].completion.ids)
    assert not any(turn.sampled.loss.any() or turn.boundary for turn in seen.turns)


@promise
@given(plan=plans, seed=st.integers(0, 100))
def test_each_token_has_the_experts_that_its_stream_or_its_turn_recorded_for_it(plan: list[Plan], seed: int) -> None:
    made = stitched(plan, seed)
    told = [part.experts for turn in shown(made, bundled()).turns for part in (turn.context, turn.sampled)]
    streams = [each.routed_experts for each in made.trajectories]
    assert np.array_equal(np.concatenate(told), np.concatenate(streams))
    for turn in shown(dataclasses.replace(made, trajectories=()), bundled()).turns:
        done, rows = turn.turn.completion, {}
        for row, experts in enumerate(done.routing.tolist()):
            rows[done.routing_start + row] = experts
        first = len(turn.turn.prompt_ids) - len(turn.context)
        for part, start in ((turn.context, first), (turn.sampled, len(turn.turn.prompt_ids))):
            for at, experts in enumerate(part.experts.tolist()):
                assert experts == rows[start + at]
        missing = len(turn.context) + len(turn.sampled) - len(turn.context.experts) - len(turn.sampled.experts)
        assert missing == (1 if first >= done.routing_start else len(turn.context) + len(turn.sampled))


def test_what_the_harness_put_in_for_the_policy_is_marked() -> None:
    made = stitched([Plan(3, 2, False, 0.0, 0), Plan(4, 2, False, 0.0, 0), Plan(4, 2, True, 0.0, 0)])
    turns = tuple(dataclasses.replace(turn, placeholder_tokens=turn.index) for turn in made.turns)
    first, second, third = shown(dataclasses.replace(made, turns=turns), bundled()).turns
    assert not first.context.placeholder.any()
    assert np.flatnonzero(second.context.placeholder).tolist() == [0], "behind the answer before it"
    assert not third.context.placeholder.any(), "after a restart nobody knows where they are"
    captured = shown(dataclasses.replace(made, turns=turns, trajectories=()), bundled()).turns
    assert [np.flatnonzero(turn.context.placeholder).tolist() for turn in captured] == [[], [0], []]


def test_streams_that_can_not_be_divided_are_told() -> None:
    made = stitched([Plan(2, 3, False, 0.0, 0), Plan(4, 2, False, 0.0, 0)])
    for mask in (np.zeros(14, bool), np.ones(14, bool), np.arange(14) % 2 == 1):
        stream = dataclasses.replace(made.trajectories[0], loss_mask=mask[: len(made.trajectories[0].token_ids)])
        seen = shown(dataclasses.replace(made, trajectories=(stream,)), bundled())
        assert not seen.divided
        assert [len(turn.sampled) for turn in seen.turns] == [3, 2]
    extra = dataclasses.replace(made.trajectories[0], boundaries=(Boundary.EXACT,) * 2)
    assert not shown(dataclasses.replace(made, trajectories=(extra,)), bundled()).divided


def test_a_stream_of_other_lengths_is_divided_by_its_runs() -> None:
    """As one whose answers were encoded again."""
    made = stitched([Plan(2, 3, False, 0.0, 0), Plan(4, 2, False, 0.0, 0)])
    mask = made.trajectories[0].loss_mask.copy()
    mask[3] = False
    seen = shown(dataclasses.replace(made, trajectories=(dataclasses.replace(made.trajectories[0], loss_mask=mask),)), bundled())
    assert seen.divided
    assert [len(turn.sampled) for turn in seen.turns] == [2, 2]


def test_another_choice_of_experts_is_compared_in_any_order() -> None:
    made = stitched([Plan(2, 3, False, 0.0, 0)], layout=(1, 2))
    (stream,) = made.trajectories
    chosen = stream.routed_experts[:, :, ::-1].copy()
    chosen[2, 0, 0] = 99
    chosen[3, 0] = [98, 99]
    seen = shown(made, bundled(), Chosen("step-3", "", [chosen]))
    assert seen.chosen is not None
    assert seen.chosen.weights == "step-3"
    (turn,) = seen.turns
    told = np.concatenate([turn.context.agreement, turn.sampled.agreement])
    assert told[:-1].tolist() == [1, 1, 0.5, 0, *[1] * (len(told) - 5)]
    assert np.isnan(told[-1]), "what it would choose after the last token isn't recorded"

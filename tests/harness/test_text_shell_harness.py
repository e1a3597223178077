import dataclasses
import functools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_templates import TEMPLATES, TOKENIZERS, build
from played import TASK, Shell, run, said, tokenizer
from promises import promise
from pydantic import ValidationError

from t1x.config import Component, Role
from t1x.harness.shell import ShellHarness
from t1x.harness.text_shell import TextShellHarness
from t1x.sandbox.protocol import ExecResult
from t1x.trajectory.audit import audit
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Boundary
from t1x.trajectory.stitcher import TokenFidelityError, TokenStitcher

built = functools.cache(functools.partial(build, padded=8))
WHOLE = {"compaction_free_tokens": 0}


def stitched(record, tokenizer=tokenizer):
    stitcher = TokenStitcher().build(tokenizer, None)
    for turn in record.turns:
        stitcher.add(turn)
    return stitcher.finish()


def continues(before, turn):
    """Whether a prompt begins with the ids that the engine consumed and sampled."""
    seen = [*before.prompt_ids.tolist(), *before.completion.ids.tolist()]
    return turn.prompt_ids[: len(seen)].tolist() == seen


def cases(record, tokenizer=tokenizer):
    return [case for trajectory in stitched(record, tokenizer) for case in trajectory.boundaries]


def test_canonical_answers_give_the_prompts_of_the_shell_harness():
    turns = said("echo hi > a.txt", "cat a.txt", "done")
    ended, record, _, shell = run(TextShellHarness(), turns)
    _, by_ids, _, shell_of_ids = run(ShellHarness(), turns)
    assert ended is EndedBy.DONE
    assert [turn.prompt_ids.tolist() for turn in record.turns] == [turn.prompt_ids.tolist() for turn in by_ids.turns]
    assert (record.transcript, shell.commands) == (by_ids.transcript, shell_of_ids.commands)
    assert cases(record) == [Boundary.EXACT] * 2
    for turn in record.turns:
        assert np.array_equal(turn.rendered.encoded.ids, turn.prompt_ids)
    begin, end = record.turns[2].rendered.answer
    assert record.turns[2].rendered.encoded.text[begin:end] == "cat a.txt"


def test_splits_that_are_not_canonical_come_back_as_others():
    letters = np.concatenate([*(tokenizer.encode(c) for c in "echo hello"), tokenizer.stop_ids[:1]]).astype(np.int32)
    _, record, _, shell = run(TextShellHarness(), [letters, *said("done")])
    assert shell.commands[0][0] == "echo hello"
    start = len(record.turns[0].prompt_ids)
    again = tokenizer.encode("echo hello")
    assert record.turns[1].prompt_ids[start : start + len(again)].tolist() == again.tolist()
    assert cases(record) == [Boundary.RETOKENIZED]
    (trajectory,) = stitched(record)
    assert trajectory.token_ids[start : start + len(letters)].tolist() == letters.tolist()


def test_an_answer_of_many_byte_tokens_is_read_from_where_a_character_begins():
    """A byte that is no character comes back as the three of U+FFFD, and eight ids before the answer's end are within them."""
    chat = built("metaspace_always", "numbered")
    unknown, bracket = 0, int(chat.encode("[")[-1])
    sampled = np.array([bracket - ord("[") + 0x9C, unknown, bracket, *chat.stop_ids], np.int32)
    _, record, _, _ = run(TextShellHarness(max_turns=2), [sampled, sampled], tokenizer=chat)
    assert "\ufffd<unk>[<|end|>" in record.turns[1].rendered.encoded.text
    assert not record.turns[1].restarted
    assert cases(record, chat) == [Boundary.RETOKENIZED]


def test_answers_lose_white_space_at_their_end():
    _, record, _, shell = run(TextShellHarness(), said("ls \n ", "done"))
    assert shell.commands[0][0] == "ls"
    history = record.turns[1].rendered.encoded.text
    assert history == f"<|user|>{TASK.instruction}<|end|><|assistant|>ls<|end|><|tool|>out<|end|><|assistant|>"
    assert cases(record) == [Boundary.EDGE]


def test_an_answer_that_was_cut_off_is_closed_by_the_template():
    long = said("echo " + "x " * 40, "done")
    _, record, _, shell = run(TextShellHarness(max_command_tokens=6), long)
    assert shell.commands == []
    assert [turn.placeholder_tokens for turn in record.turns] == [0, 1]
    (trajectory,) = stitched(record)
    assert trajectory.token_ids[trajectory.loss_mask].tolist() == np.concatenate([long[0][:6], long[1]]).tolist()


def test_a_special_token_in_an_answer_is_lost_and_told():
    sampled = np.array([*tokenizer.encode("ls"), 3, *tokenizer.encode(" -l"), *tokenizer.stop_ids], np.int32)
    _, record, _, shell = run(TextShellHarness(), [sampled, *said("done")])
    assert shell.commands[0][0] == "ls -l"
    assert [turn.restarted for turn in record.turns] == [False, True]


REASONED = "<think>\nwhy\n</think>\n\nls"


@pytest.mark.parametrize(
    ("template", "role", "answer", "restarted"),
    [
        ("drops_reasoning", "tool", REASONED, True),
        ("drops_reasoning", "tool", "ls", False),
        ("block_in_history", "user", REASONED, True),
        ("block_in_history", "tool", REASONED, False),
        ("block_in_history", "tool", "ls", True),
        ("trims", "tool", " ls", True),
        ("trims", "tool", "ls\n", False),
        ("begins_once", "tool", " ls", False),
        ("begins_once", "tool", "ls", True),
        ("begins_once", "tool", "\t", True),
    ],
)
def test_what_the_template_rewrites_is_told(template, role, answer, restarted):
    chat = built("byte_level", template)
    harness = TextShellHarness(observation_role=role, max_command_tokens=60)
    _, record, _, _ = run(harness, said(answer, "done"), tokenizer=chat)
    assert [turn.restarted for turn in record.turns] == [False, restarted]
    assert (cases(record, chat) == [Boundary.RESTART]) == restarted


def test_what_is_not_told_is_refused_with_what_the_template_does():
    chat = built("byte_level", "drops_reasoning")
    _, record, _, _ = run(TextShellHarness(max_command_tokens=60), said(REASONED, "done"), tokenizer=chat)
    stitcher = TokenStitcher().build(chat, None)
    stitcher.add(record.turns[0])
    with pytest.raises(TokenFidelityError, match=r"turn 1: .*Reasoning is dropped once a message of the tool or user follows\."):
        stitcher.add(dataclasses.replace(record.turns[1], restarted=False))


def test_old_turns_are_summarized_when_the_context_runs_short():
    commands = [f"echo {word}" for word in ("apple", "birch", "cedar", "daisy", "elder")]
    shell = Shell(ExecResult("seen " * 9, 0))
    harness = TextShellHarness(context_tokens=160, max_command_tokens=12, observation_tokens=20)
    _, record, _, _ = run(harness, said(*commands, "done"), shell=shell)
    first = next(turn for turn in record.turns if turn.restarted)
    text = first.rendered.encoded.text
    ran = commands[: first.index]
    summary = f"<|user|>{TASK.instruction}\n\nRun before: {'; '.join(ran[:-1])}<|end|>"
    assert text.startswith(f"{summary}<|assistant|>{ran[-1]}<|end|><|tool|>seen")
    assert text.count("seen") == record.turns[1].rendered.encoded.text.count("seen"), "one turn's"
    assert [turn.restarted for turn in record.turns].count(True) == cases(record).count(Boundary.RESTART) >= 1
    assert all(len(turn.prompt_ids) <= 160 - 64 for turn in record.turns)


def test_a_long_summary_is_cut_in_its_middle():
    shell = Shell(ExecResult("seen " * 9, 0))
    harness = TextShellHarness(
        context_tokens=160, max_turns=30, max_command_tokens=12, observation_tokens=20, summary_tokens=10, kept_turns=0
    )
    _, record, _, _ = run(harness, said(*(f"echo {i} {i} {i}" for i in range(20)), "done"), shell=shell)
    last = [turn for turn in record.turns if turn.restarted][-1]
    summary = last.rendered.encoded.text.partition("\n\n")[2].partition("<|end|>")[0]
    assert summary.startswith("Run bef")
    assert "..." in summary
    assert summary.endswith(str(last.index - 1)), "the latest command is told"
    assert len(tokenizer.encode(summary)) <= 12


def test_history_is_not_summarized_where_that_is_off():
    shell = Shell(ExecResult("seen " * 9, 0))
    ended, record, _, _ = run(TextShellHarness(context_tokens=160, **WHOLE), said(*["echo apple"] * 8), shell=shell)
    assert ended is EndedBy.CONTEXT
    assert not any(turn.restarted for turn in record.turns)


@promise
@given(st.sampled_from(sorted(TOKENIZERS)), st.sampled_from(sorted(TEMPLATES)), st.sampled_from([0, 40]), st.data())
def test_whatever_is_sampled_every_boundary_is_a_case(name, template, free, data):
    """Bytes that aren't UTF-8, special tokens, white space, ids that only the model has, other splits than an encoder's."""
    chat = built(name, template)
    padding = [id_ for id_ in range(chat.vocab_size) if not chat.bytes_of(id_)]
    ids = (
        st.integers(0, chat.vocab_size - 1)
        | st.sampled_from(padding)
        | st.sampled_from([*sorted(chat.blank_ids), *chat.encode("ls -a.txt").tolist()])
    )
    answers = data.draw(st.lists(st.tuples(st.lists(ids, min_size=1, max_size=5), st.booleans()), min_size=2, max_size=6))
    stop = chat.stop_ids[0]
    turns = [np.array([id_ for id_ in sampled if id_ != stop or ends] + [stop] * ends, np.int32) for sampled, ends in answers]
    turns = [turn[: 1 + turn.tolist().index(stop)] if stop in turn else np.append(turn, 9) for turn in turns]
    harness = TextShellHarness(
        context_tokens=data.draw(st.integers(80, 120)),
        max_command_tokens=8,
        max_turns=len(turns),
        observation_tokens=20,
        compaction_free_tokens=free,
        summary_tokens=data.draw(st.integers(1, 3)),
        observation_role=data.draw(st.sampled_from(["tool", "user"])),
        done_text="never said",
    )
    shell = Shell(ExecResult(data.draw(st.sampled_from(["", "out", "<|end|> é \n b", "<think>x</think>"])), 0))
    _, record, _, _ = run(harness, turns, shell=shell, tokenizer=chat)
    trajectories = stitched(record, chat)
    found = audit(record.turns, trajectories)
    assert found.own_turn_violations == 0
    restarts = sum(now.restarted and not continues(before, now) for before, now in pairwise(record.turns))
    assert len(trajectories) == 1 + restarts
    assert max(len(trajectory.token_ids) for trajectory in trajectories) <= harness.context_tokens


def test_what_training_sees_of_a_trial_fits_the_context():
    """The sample keeps the block that ended each prompt; history doesn't."""
    chat = built("byte_level", "empty_block")
    ended, record, _, _ = run(TextShellHarness(context_tokens=120, max_turns=20, **WHOLE), said(*["ls"] * 20), tokenizer=chat)
    assert ended is EndedBy.CONTEXT
    (trajectory,) = stitched(record, chat)
    assert set(trajectory.boundaries) == {Boundary.EDGE}
    last = record.turns[-1]
    assert 100 < len(trajectory.token_ids) <= 120
    assert len(last.prompt_ids) + len(last.completion.ids) < 80


def test_a_script_plays_back_as_its_commands():
    harness = TextShellHarness(done_text="finished")
    _, record, _, shell = run(harness, harness.script(["ls -l", "cd /tmp"], tokenizer))
    assert [command for command, _ in shell.commands] == ["ls -l", "cd /tmp"]
    assert cases(record) == [Boundary.EXACT] * 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_command_tokens": 65}, "max_command_tokens \\(65\\) exceeds compaction_free_tokens \\(64\\)"),
        ({"context_tokens": 168}, "are 104 tokens, but the next one is at 104"),
        ({"kept_turns": 3}, "are 200 tokens, but the next one is at 192"),
        ({"context_tokens": 24}, "leaves no room for a prompt"),
        ({"observation_tail": 25}, "observation_tail 25 is part of observation_tokens"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        TextShellHarness(**fields)


@pytest.mark.parametrize("fields", [{}, {"context_tokens": 169}, {"kept_turns": 2}, {"context_tokens": 25, **WHOLE}])
def test_a_budget_that_fits_is_taken(fields):
    harness = TextShellHarness(**fields)
    assert {name: getattr(harness, name) for name in fields} == fields


def test_it_is_registered_and_its_sizes_may_be_set_by_a_site():
    assert Component.registry["TextShellHarness"] is TextShellHarness
    assert TextShellHarness.role("compaction_free_tokens") is Role.SCALE
    assert TextShellHarness.role("max_turns") is Role.SCALE
    assert TextShellHarness.role("observation_role") is Role.ALGORITHM

import asyncio

import numpy as np
import pytest
from own_templates import build
from played import TASK, Engine, Record, Shell, run, said, tokenizer
from pydantic import ValidationError

from t1x.config import Component, Role
from t1x.engine.protocol import Decoding, EngineError
from t1x.harness.shell import ShellHarness
from t1x.sandbox.protocol import SandboxError
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import TokenStitcher


def test_a_conversation_until_done():
    ended, record, engine, shell = run(ShellHarness(command_timeout=3), said("echo hi > a.txt", " cat a.txt", "done"))
    assert ended is EndedBy.DONE
    assert shell.commands == [("echo hi > a.txt", 3), ("cat a.txt", 3)]
    assert record.transcript == [
        ("user", TASK.instruction),
        ("assistant", "echo hi > a.txt"),
        ("tool", "out"),
        ("assistant", "cat a.txt"),
        ("tool", "out"),
        ("assistant", "done"),
    ]
    assert [turn.index for turn in record.turns] == [0, 1, 2]
    assert [(s.decoding, s.max_tokens, s.stop_ids, s.seed) for s in engine.samplings] == [
        (Decoding(0.7, 0.9, 5), 24, tokenizer.stop_ids, 100 + turn) for turn in range(3)
    ]


def test_every_boundary_is_exact_by_construction():
    _, record, engine, _ = run(ShellHarness(), said("ls", "pwd", "done"))
    assert np.array_equal(engine.prompts[0], tokenizer.first_prompt(TASK.instruction))
    for before, after in zip(record.turns, record.turns[1:], strict=False):
        whole = np.concatenate([before.prompt_ids, before.completion.ids, tokenizer.glue("out")])
        assert np.array_equal(after.prompt_ids, whole)
        assert np.shares_memory(before.prompt_ids, after.prompt_ids)
        assert not after.prompt_ids.flags.writeable


def test_sampled_ids_are_kept_though_they_are_not_the_canonical_encoding():
    letters = np.concatenate([*(tokenizer.encode(c) for c in "echo hello"), tokenizer.stop_ids[:1]]).astype(np.int32)
    assert len(letters) > len(tokenizer.encode("echo hello")) + 1
    _, record, _, shell = run(ShellHarness(), [letters, *said("done")])
    assert shell.commands[0][0] == "echo hello"
    start = len(record.turns[0].prompt_ids)
    assert np.array_equal(record.turns[1].prompt_ids[start : start + len(letters)], letters)


def test_done_is_the_whole_message():
    ended, _, _, shell = run(ShellHarness(max_turns=2), said("echo done", "done now"))
    assert ended is EndedBy.TURN_LIMIT
    assert [command for command, _ in shell.commands] == ["echo done", "done now"]


def test_the_turn_limit_runs_the_last_command():
    ended, record, _, shell = run(ShellHarness(max_turns=2), said("ls", "pwd", "done"))
    assert ended is EndedBy.TURN_LIMIT
    assert len(record.turns) == 2
    assert [command for command, _ in shell.commands] == ["ls", "pwd"]


def test_a_command_that_is_cut_off_is_not_run_and_its_message_is_closed_as_context():
    long = said("echo " + "x " * 40, "done")
    ended, record, _, shell = run(ShellHarness(max_command_tokens=6), long)
    assert ended is EndedBy.DONE
    assert shell.commands == []
    first, second = record.turns
    assert len(first.completion.ids) == 6
    closed = np.concatenate([first.prompt_ids, long[0][:6], tokenizer.stop_ids[:1], tokenizer.glue("command too long")])
    assert np.array_equal(second.prompt_ids, closed)
    assert [turn.placeholder_tokens for turn in record.turns] == [0, 1]
    stitcher = TokenStitcher().build(tokenizer, None)
    for turn in record.turns:
        stitcher.add(turn)
    (trajectory,) = stitcher.finish()
    sampled = trajectory.token_ids[trajectory.loss_mask]
    assert np.array_equal(sampled, np.concatenate([long[0][:6], long[1]]))


@pytest.mark.parametrize("room", [1, 3])
def test_a_completion_that_fills_the_context_ends_the_trial(room):
    context = len(tokenizer.first_prompt(TASK.instruction)) + room
    ended, record, engine, shell = run(ShellHarness(context_tokens=context, max_command_tokens=5), said("echo a b c d e f"))
    assert ended is EndedBy.CONTEXT
    assert engine.samplings[0].max_tokens == room
    assert len(record.turns) == 1
    assert shell.commands == []


def test_a_full_context_ends_the_trial_before_the_engine_is_asked():
    fits = len(tokenizer.first_prompt(TASK.instruction)) + len(said("ls")[0]) + len(tokenizer.glue("out"))
    ended, record, engine, _ = run(ShellHarness(context_tokens=fits, max_command_tokens=5), said("ls", "done"))
    assert ended is EndedBy.CONTEXT
    assert len(engine.prompts) == len(record.turns) == 1
    ended, _, engine, _ = run(ShellHarness(context_tokens=fits + 2, max_command_tokens=5), said("ls", "done"))
    assert len(engine.prompts) == 2


def test_errors_of_sandbox_and_engine_pass_through_and_turns_are_kept():
    record = Record()
    harness = ShellHarness()
    given = {
        "task": TASK,
        "tokenizer": tokenizer,
        "decoding": Decoding(1.0),
        "seed_for": lambda turn: 0,
        "session": "s",
        "sink": record,
    }
    with pytest.raises(SandboxError):
        asyncio.run(harness.run(sandbox=Shell(SandboxError("gone")), engine=Engine(said("ls")), **given))
    assert len(record.turns) == 1
    with pytest.raises(EngineError):
        asyncio.run(harness.run(sandbox=Shell(), engine=Engine(said("ls")), **given))
    with pytest.raises(EngineError, match="aborted"):
        asyncio.run(harness.run(sandbox=Shell(), engine=Engine(said("ls"), finish_reason="abort"), **given))


def test_a_script_plays_back_as_its_commands():
    harness = ShellHarness(done_text="finished")
    _, _, _, shell = run(harness, harness.script(["ls -l", "cd /tmp"], tokenizer))
    assert [command for command, _ in shell.commands] == ["ls -l", "cd /tmp"]


class Renamed(ShellHarness):
    """One of somebody's own."""


@pytest.mark.parametrize(
    ("commands", "which"), [(["ls", "echo a b c d e f g h i j k"], "command 2"), ([], "done_text 'finished or so'")]
)
def test_a_script_says_what_its_longest_message_needs(commands, which):
    def script(limit):
        return Renamed(max_command_tokens=limit, done_text="finished or so").script(commands, tokenizer)

    longest = max(map(len, script(100)))
    with pytest.raises(ValueError, match=rf"^{which} is too long: Renamed\.max_command_tokens = 2, needs {longest} or more$"):
        script(2)
    with pytest.raises(ValueError, match=f"needs {longest} or more"):
        script(longest - 1)
    assert len(script(longest)) == len(commands) + 1


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValidationError, match="observation_tail"):
        ShellHarness(observation_tokens=4, observation_tail=5)
    with pytest.raises(ValidationError, match="max_command_tokens"):
        ShellHarness(context_tokens=24, max_command_tokens=24)


def test_it_is_registered_and_its_sizes_may_be_set_by_a_site():
    assert Component.registry["ShellHarness"] is ShellHarness
    assert ShellHarness.role("context_tokens") is Role.SCALE
    assert ShellHarness.role("done_text") is Role.ALGORITHM


def test_what_the_template_writes_before_every_answer_is_no_part_of_a_command():
    chat = build("byte_level", "block_in_history")
    _, record, _, shell = run(ShellHarness(max_command_tokens=60), said("<think>\n\n</think>\n\nls", "cat", "done"), tokenizer=chat)
    assert [command for command, _ in shell.commands] == ["ls", "cat"]
    assert ("assistant", "ls") in record.transcript

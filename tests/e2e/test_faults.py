"""What agents, tasks and sandboxes do wrong: the rollout goes on, each trial says why it ended, others aren't touched, nothing
stays."""

import asyncio
import dataclasses
import os
import signal
from pathlib import Path

import pytest
from faulty_rollout import HARNESS, TASK, Attempt, broken, play, reference, shown, untouched
from leftovers import alive, started

from t1x.campaign.validity import causes
from t1x.sandbox.removal import remove_tree
from t1x.tasks.task import TaskFile
from t1x.trajectory.ending import EndedBy

SOLVED = TASK.assertions / 20
SLEEP = f"sleep {os.getpid()}11"
"""A command that nothing else on this machine runs."""


AGENT_FAULTS = {
    "fork bomb": (["bomb() { bomb | bomb & }; bomb; sleep 1; echo $?", "exit"], {"processes": 40}, "shell restarted"),
    "endless output": (["yes"], {}, "timeout"),
    "endless output without a newline": (["tr '\\0' x </dev/zero"], {}, "timeout"),
    "escapes and invalid UTF-8": (["printf '\\033[2J\\033]0;title\\007\\033[?1049h\\377\\376 end'"], {}, "end"),
    "waits for input": (["read line; cat; python3 -c 'input()'"], {}, "EOFError"),
    "a background process that outlives its turn": ([f"{SLEEP} & setsid nohup {SLEEP} & disown -a"], {}, ""),
    "a file of 1 GB": (["head -c 1000000000 /dev/zero >big; echo $?; ls -s big; rm big"], {"file_size": 4}, "153"),
    "a full disk": (["head -c 40M /dev/zero >big; sleep 20"], {"disk": 8}, "disk limit"),
    "a deleted cwd": (["mkdir gone; cd gone; rmdir ../gone", "ls; pwd; touch x", "cd /app"], {}, "No such file"),
    "exit typed by the agent": (["exit 3", "exec true", "kill -9 $$"], {}, "shell restarted"),
    "kills whatever it can": (["kill -9 -1; kill -9 1"], {}, ""),
}


@pytest.mark.parametrize("fault", AGENT_FAULTS)
def test_what_an_agent_does_wrong_it_can_go_on_from(sandboxes: Path, fault: str) -> None:
    commands, fields, seen = AGENT_FAULTS[fault]
    quick = HARNESS.model_copy(update={"command_timeout": 2.0}) if seen == "timeout" else HARNESS
    outcome = play(sandboxes, [Attempt(TASK, [*commands, *reference(TASK)])], harness=quick, **fields)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.error) == (EndedBy.DONE, ""), shown(trial)
    assert trial.report.resolved, shown(trial)
    assert trial.reward == SOLVED
    told = "\n".join(shown(trial)[: len(commands)])
    assert seen in told
    assert not set(told) & {chr(code) for code in (*range(9), *range(11, 32), 127)}, "a control character reached the transcript"
    assert not alive(SLEEP)
    assert outcome.metrics["rollout/invalid"] == 0


def test_a_verifier_that_hangs(sandboxes: Path) -> None:
    hanging = dataclasses.replace(TASK, tests=(TaskFile("test.sh", f"{SLEEP} & exec {SLEEP}\n".encode()),), verifier_timeout=1.0)
    outcome = play(sandboxes, [Attempt(hanging, reference(TASK))])
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward, trial.report.cause) == (EndedBy.VERIFIER_ERROR, None, "timeout")
    assert "the verifier ran longer than 1 s" in trial.error
    assert not alive(SLEEP)
    assert (outcome.metrics["rollout/invalid/verifier_error"], outcome.metrics["rollout/admitted"]) == (1, 2)


def test_an_agent_that_hangs(sandboxes: Path) -> None:
    """In a command that would outlast its deadline; what it had done counts."""
    task = dataclasses.replace(TASK, agent_timeout=3.0)
    outcome = play(sandboxes, [Attempt(task, [*reference(TASK), f"trap '' TERM INT; {SLEEP}"])])
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward) == (EndedBy.AGENT_DEADLINE, SOLVED)
    assert not alive(SLEEP)


def sandbox_of(pid: int) -> int:
    """The bubblewrap process on this side of the sandbox in which a process runs."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def test_a_sandbox_that_is_killed_in_the_middle_of_a_turn_begins_anew(sandboxes: Path) -> None:
    """The files are there still: the agent is told and goes on."""

    async def kill() -> None:
        os.kill(sandbox_of(await started(SLEEP)), signal.SIGKILL)

    outcome = play(sandboxes, [Attempt(TASK, [SLEEP, *reference(TASK)])], meanwhile=kill)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward) == (EndedBy.DONE, SOLVED)
    assert "shell restarted" in shown(trial)[0]


def test_a_sandbox_that_dies_for_good_in_the_middle_of_a_turn(sandboxes: Path) -> None:
    def folder() -> Path:
        (file,) = sandboxes.glob("t1x-sandboxes-*/*/work/here")
        return file.parents[1]

    async def kill() -> None:
        pid = await started(SLEEP)
        taken = folder()
        moved = taken.rename(taken.with_name("taken"))
        os.kill(sandbox_of(pid), signal.SIGKILL)
        while alive(SLEEP):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        remove_tree(moved)

    outcome = play(sandboxes, [Attempt(TASK, ["touch here", SLEEP, *reference(TASK)])], meanwhile=kill)
    untouched(outcome)
    (trial,) = outcome.faulty
    assert (trial.ended_by, trial.reward, trial.trajectories) == (EndedBy.SANDBOX_ERROR, None, ())
    assert trial.error
    assert len(trial.turns) == 2
    assert outcome.metrics["rollout/invalid/sandbox_error"] == 1


def test_a_creation_that_fails_sometimes(sandboxes: Path) -> None:
    outcome = play(sandboxes, [Attempt(broken(TASK), reference(TASK))] * 3, create_concurrency=2, per_node=3)
    untouched(outcome)
    for trial in outcome.faulty:
        assert (trial.ended_by, trial.turns, trial.report, trial.reward) == (EndedBy.SANDBOX_ERROR, (), None, None)
        assert "environment/Dockerfile:3: RUN" in trial.error
        assert "no wood" in trial.error
    assert (outcome.metrics["sandbox/failed"], outcome.metrics["sandbox/created"]) == (3, 2)


def test_a_creation_that_fails_every_time(sandboxes: Path) -> None:
    outcome = play(sandboxes, [Attempt(broken(TASK), reference(TASK))] * 4, healthy=0)
    assert outcome.batch.admitted == ()
    assert causes(outcome.batch.others).startswith("4 × sandbox_error: ")
    assert (outcome.metrics["rollout/invalid"], outcome.metrics["rollout/invalid/sandbox_error"]) == (4, 4)
    assert (outcome.metrics["sandbox/failed"], outcome.metrics["sandbox/created"]) == (4, 0)


def test_a_creation_that_never_ends(sandboxes: Path) -> None:
    outcome = play(sandboxes, [Attempt(broken(TASK, SLEEP), reference(TASK))] * 2, setup_deadline=5.0)
    untouched(outcome)
    assert {trial.ended_by for trial in outcome.faulty} == {EndedBy.SANDBOX_ERROR}
    assert {trial.error for trial in outcome.faulty} == {f"task {TASK.name}: its sandbox wasn't made within setup_deadline (5 s)"}
    assert not alive(SLEEP)

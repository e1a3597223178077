"""Trials in real sandboxes with real verifiers; the engine plays back what the agent says."""

import asyncio
import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest
from leftovers import alive, started

from t1x.engine.protocol import Decoding
from t1x.engine.scripted import ScriptedEngine
from t1x.grading.reward import Reward, TestCountReward
from t1x.harness.shell import ShellHarness
from t1x.rollout.trial import run_trial
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Run, TaskFile
from t1x.text.bundled import BundledTokenizer
from t1x.trajectory.audit import audit
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import RoutingRecordError, TokenStitcher

tokenizer = BundledTokenizer().build()
harness = ShellHarness(max_command_tokens=60, context_tokens=600, command_timeout=60)
POOL = SyntheticPool(split="demo", size=6).build()
TASK = POOL[0]
REFERENCE = [command for goal in TASK.solution for command in goal.commands]
SLEEP = f"sleep {os.getpid()}00"
"""A command that nothing else on this machine runs."""


class Engine(ScriptedEngine):
    """Plays back one session, "t", and knows whether it was released."""

    def __init__(self, script):
        super().__init__({"t": script})
        self.released = []

    async def release(self, session):
        self.released.append(session)
        await super().release(session)


class Attempt:
    """One trial in a host of its own; afterwards nothing may be left of it."""

    def __init__(self, sandboxes, commands=(), script=None, task=TASK, sandbox=None, **changes):
        self.sandboxes, self.task, self.sandbox = sandboxes, task, sandbox or {}
        self.engine = Engine(harness.script(commands, tokenizer) if script is None else script)
        self.changes = {"harness": harness, "reward": TestCountReward(), "engine": self.engine} | changes

    async def run(self, host):
        return await run_trial(
            self.task,
            trial_id="t",
            host=host,
            tokenizer=tokenizer,
            stitch=lambda turns: TokenStitcher().stitch("t", turns, tokenizer, None),
            **self.changes,
            decoding=Decoding(1.0),
            seed_for=lambda turn: turn,
        )

    async def play(self, meanwhile=None):
        host = BubblewrapSandbox(root=self.sandboxes, **self.sandbox).build()
        try:
            (run_folder,) = self.sandboxes.iterdir()
            before = sorted(run_folder.iterdir())
            running = asyncio.create_task(self.run(host))
            if meanwhile is not None:
                await meanwhile(running)
            await asyncio.wait([running])
            assert sorted(run_folder.iterdir()) == before
            assert self.engine.released in (["t"], [])
            assert not alive(SLEEP)
            assert host.living == 0
            return running.result()
        finally:
            await host.close()

    def __call__(self, meanwhile=None):
        return asyncio.run(self.play(meanwhile))


def test_the_reference_solution_from_lease_to_reward(sandboxes):
    attempt = Attempt(sandboxes, REFERENCE)
    trial = attempt()
    assert (trial.id, trial.task, trial.ended_by, trial.error) == ("t", TASK, EndedBy.DONE, "")
    assert trial.report.resolved
    assert trial.reward == TASK.assertions / 20
    assert len(trial.turns) == len(REFERENCE) + 1
    assert [text for role, text in trial.transcript if role == "assistant"] == [*REFERENCE, "done"]
    assert set(trial.timings) == {"wait", "create", "agent", "verify", "destroy"}
    (trajectory,) = trial.trajectories
    assert tokenizer.decode(trajectory.token_ids[trajectory.loss_mask]) == "".join([*REFERENCE, "done"])
    assert audit(trial.turns, trial.trajectories).own_turn_violations == 0
    assert attempt.engine.released == ["t"]


def test_the_final_state_is_judged_whatever_the_agent_says(sandboxes):
    nothing = Attempt(sandboxes, [])()
    assert (nothing.ended_by, nothing.report.resolved) == (EndedBy.DONE, False)
    assert nothing.reward == nothing.report.passed / 20
    unsaid = Attempt(sandboxes, REFERENCE, harness=harness.model_copy(update={"max_turns": len(REFERENCE)}))()
    assert (unsaid.ended_by, unsaid.report.resolved) == (EndedBy.TURN_LIMIT, True)


def test_without_a_reward_nothing_is_verified(sandboxes):
    trial = Attempt(sandboxes, REFERENCE, reward=None)()
    assert (trial.ended_by, trial.report, trial.reward) == (EndedBy.DONE, None, None)
    assert len(trial.trajectories) == 1
    assert "verify" not in trial.timings


def test_the_agents_deadline_ends_a_running_command_and_the_verifier_still_judges(sandboxes):
    task = dataclasses.replace(TASK, agent_timeout=3.0)
    trial = Attempt(sandboxes, [*REFERENCE, SLEEP], task=task)()
    assert 3 <= trial.timings["agent"] < harness.command_timeout / 2
    assert trial.ended_by is EndedBy.AGENT_DEADLINE
    assert trial.report.resolved
    assert trial.reward == TASK.assertions / 20
    assert len(trial.turns) == len(REFERENCE) + 1


def test_an_engine_that_fails_makes_the_trial_invalid(sandboxes):
    trial = Attempt(sandboxes, script=harness.script(["ls"], tokenizer)[:1])()
    assert trial.ended_by is EndedBy.ENGINE_ERROR
    assert (trial.reward, trial.report, trial.trajectories) == (None, None, ())
    assert len(trial.turns) == 1
    assert "no further completion" in trial.error


class Gone(ShellHarness):
    """The sandbox dies under the agent's hands."""

    async def run(self, *, sandbox, **given):
        await sandbox.destroy()
        return await super().run(sandbox=sandbox, **given)


def test_a_sandbox_that_fails_makes_the_trial_invalid(sandboxes):
    trial = Attempt(sandboxes, ["ls"], harness=Gone())()
    assert trial.ended_by is EndedBy.SANDBOX_ERROR
    assert (trial.reward, trial.report, trial.trajectories) == (None, None, ())
    assert len(trial.turns) == 1
    assert "destroyed" in trial.error


@pytest.mark.parametrize(
    ("test_sh", "timeout", "cause"),
    [
        (b"true\n", 60, "missing"),
        (b"echo nonsense > /logs/verifier/ctrf.json\n", 60, "unparsable"),
        (b"sleep 600\n", 1, "timeout"),
    ],
)
def test_a_verifier_that_fails_makes_the_trial_invalid(sandboxes, test_sh, timeout, cause):
    task = dataclasses.replace(TASK, tests=(TaskFile("test.sh", test_sh),), verifier_timeout=timeout)
    trial = Attempt(sandboxes, REFERENCE, task=task)()
    assert trial.ended_by is EndedBy.VERIFIER_ERROR
    assert (trial.reward, trial.trajectories) == (None, ())
    assert trial.report.cause == cause
    assert cause in trial.error


def test_what_held_before_the_agent_acted_is_not_paid(sandboxes):
    made = dataclasses.replace(TASK, environment=(*TASK.environment, Run("; ".join(REFERENCE), TASK.workdir)))
    (solved,) = {trial.report.assertions for trial in (Attempt(sandboxes, REFERENCE)(), Attempt(sandboxes, [], task=made)())}
    known = dataclasses.replace(made, baseline=frozenset(name for name, _ in solved[1:]))
    trial = Attempt(sandboxes, [], task=known)()
    assert (trial.report.resolved, trial.report.baseline, trial.reward) == (True, known.baseline, 1 / 20)
    unknown = Attempt(sandboxes, [], task=dataclasses.replace(made, baseline=None))()
    assert (unknown.ended_by, unknown.reward) == (EndedBy.VERIFIER_ERROR, None)
    assert "exclude_baseline is set" in unknown.error


@pytest.mark.parametrize(("reward", "worth"), [("1", 3 / 20), ("0.5", 0.0), ("nan", None)])
def test_an_attested_outcome_is_paid_without_a_record(sandboxes, reward, worth):
    script = TaskFile("test.sh", f"echo {reward} > /logs/verifier/reward.txt\n".encode())
    trial = Attempt(sandboxes, REFERENCE, task=dataclasses.replace(TASK, tests=(script,), verifier="harbor", assertions=3))()
    assert (trial.reward, trial.report.cause) == (worth, "bad_reward" if worth is None else "missing")
    assert trial.ended_by is (EndedBy.VERIFIER_ERROR if worth is None else EndedBy.DONE)


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_trial_keeps_its_turns_and_leaves_nothing(sandboxes, times):
    async def cancel(running):
        await started(SLEEP)
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)

    attempt = Attempt(sandboxes, ["ls", SLEEP])
    trial = attempt(cancel)
    assert trial.ended_by is EndedBy.CANCELLED
    assert (trial.reward, trial.report, trial.trajectories, trial.error) == (None, None, (), "")
    assert len(trial.turns) == 2
    assert trial.transcript[-1] == ("assistant", SLEEP)
    assert attempt.engine.released == ["t"]


def test_a_second_cancellation_does_not_interrupt_the_clean_up(sandboxes):
    destroyed = []

    class Slow(Attempt):
        async def run(self, host):
            create = host.create

            async def create_slow(task):
                lease = await create(task)
                destroy = lease.destroy

                async def destroy_slowly():
                    await asyncio.sleep(0.2)
                    await destroy()
                    destroyed.append(lease.id)

                lease.destroy = destroy_slowly
                return lease

            host.create = create_slow
            return await super().run(host)

    async def cancel(running):
        await started(SLEEP)
        while not running.done():
            running.cancel()
            await asyncio.sleep(0.02)

    assert Slow(sandboxes, [SLEEP])(cancel).ended_by is EndedBy.CANCELLED
    assert len(destroyed) == 1


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
def test_a_trial_can_be_cancelled_at_any_moment(sandboxes, steps):
    async def cancel(running):
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()

    if steps:
        assert Attempt(sandboxes, REFERENCE)(cancel).ended_by is EndedBy.CANCELLED
    else:
        with pytest.raises(asyncio.CancelledError):  # its task never ran a step
            Attempt(sandboxes, REFERENCE)(cancel)


def test_a_trial_can_be_cancelled_while_it_is_verified(sandboxes):
    async def cancel(running):
        await started(SLEEP)
        running.cancel()

    task = dataclasses.replace(TASK, tests=(TaskFile("test.sh", f"exec {SLEEP}\n".encode()),))
    trial = Attempt(sandboxes, REFERENCE, task=task)(cancel)
    assert (trial.ended_by, trial.reward, trial.report) == (EndedBy.CANCELLED, None, None)
    assert len(trial.turns) == len(REFERENCE) + 1


class Silent(Engine):
    """Never answers."""

    async def generate(self, prompt_ids, sampling, session):
        await asyncio.sleep(600)


SLOW_VERIFIER = dataclasses.replace(TASK, tests=(TaskFile("test.sh", f"exec {SLEEP}\n".encode()),))
SLOW_SETUP = dataclasses.replace(TASK, environment=(*TASK.environment, Run(SLEEP, "/app")))


@pytest.mark.parametrize(
    ("phase", "given"),
    [
        ("agent", {"commands": [SLEEP]}),
        ("agent", {"engine": Silent([])}),
        ("verify", {"commands": REFERENCE, "task": SLOW_VERIFIER}),
    ],
)
def test_the_remote_deadline_ends_a_trial_whatever_it_does(sandboxes, phase, given):
    trial = Attempt(sandboxes, sandbox={"remote_deadline": 2.0}, **given)()
    assert trial.ended_by is EndedBy.REMOTE_DEADLINE
    assert trial.error == f"the trial reached its sandbox's remote_deadline in phase '{phase}'"
    assert (trial.reward, trial.report, trial.trajectories) == (None, None, ())
    assert trial.timings["create"] + sum(trial.timings.get(name, 0.0) for name in ("agent", "verify")) >= 2.0


def test_an_agents_own_deadline_comes_before_the_remote_one(sandboxes):
    task = dataclasses.replace(TASK, agent_timeout=1.0)
    trial = Attempt(sandboxes, [*REFERENCE, SLEEP], task=task, sandbox={"remote_deadline": 120.0})()
    assert (trial.ended_by, trial.report.resolved) == (EndedBy.AGENT_DEADLINE, True)


@pytest.mark.parametrize(
    ("terms", "ended_by"),
    [
        ({"setup_deadline": 1.0}, EndedBy.SANDBOX_ERROR),
        ({"setup_deadline": 1.0, "remote_deadline": 60.0}, EndedBy.SANDBOX_ERROR),
        ({"remote_deadline": 1.0}, EndedBy.REMOTE_DEADLINE),
    ],
)
def test_the_commands_that_make_an_environment_are_part_of_the_setup(sandboxes, terms, ended_by):
    trial = Attempt(sandboxes, task=SLOW_SETUP, sandbox=terms)()
    assert trial.ended_by is ended_by
    assert "its sandbox wasn't made within " + next(iter(terms)) in trial.error
    assert (trial.reward, trial.report, trial.turns) == (None, None, ())


ENDS = {
    EndedBy.DONE: {"commands": REFERENCE},
    EndedBy.TURN_LIMIT: {"commands": REFERENCE, "harness": harness.model_copy(update={"max_turns": 1})},
    EndedBy.CONTEXT: {"commands": ["ls"] * 50, "harness": harness.model_copy(update={"max_turns": 60, "context_tokens": 250})},
    EndedBy.AGENT_DEADLINE: {"commands": [SLEEP], "task": dataclasses.replace(TASK, agent_timeout=0.5)},
    EndedBy.SANDBOX_ERROR: {"commands": ["ls"], "harness": Gone()},
    EndedBy.ENGINE_ERROR: {"script": []},
    EndedBy.VERIFIER_ERROR: {"task": dataclasses.replace(SLOW_VERIFIER, verifier_timeout=0.5)},
    EndedBy.REMOTE_DEADLINE: {"commands": [SLEEP], "sandbox": {"remote_deadline": 2.0}},
    EndedBy.CANCELLED: {"commands": [SLEEP]},
}
"""How each end is brought about."""
TABLE = re.findall(
    r"^\| (`.*?) \| (yes|no).*? \| (counts|is invalid|is neither):",
    Path(__file__).parents[2].joinpath("docs", "sandboxes.md").read_text().partition("## How a trial ends")[2],
    re.MULTILINE,
)
"""Each row's ends, whether the verifier runs, and what becomes of the trial, as the page tells it."""


@pytest.mark.parametrize(("end", "verified", "becomes"), [(end, *row) for ends, *row in TABLE for end in re.findall(r"\w+", ends)])
def test_the_table_of_ends(sandboxes, end, verified, becomes):
    async def cancel(running):
        await started(SLEEP)
        running.cancel()

    trial = Attempt(sandboxes, **ENDS[EndedBy(end)])(cancel if end == "cancelled" else None)
    assert trial.ended_by == end
    assert (trial.report is not None and trial.report.cause is None) == (verified == "yes")
    assert (trial.reward is not None) == trial.ended_by.counts == (becomes == "counts")
    assert bool(trial.trajectories) == (becomes == "counts" and len(trial.turns) > 0)
    assert trial.ended_by.invalid == (becomes == "is invalid") == bool(trial.error)


def test_the_table_has_every_end_once():
    assert sorted(end for ends, *_ in TABLE for end in re.findall(r"\w+", ends)) == sorted(EndedBy)


class Short(Engine):
    """Loses a routing row."""

    async def generate(self, prompt_ids, sampling, session):
        done = await super().generate(prompt_ids, sampling, session)
        return dataclasses.replace(done, routing=done.routing[1:])


class Unrouted(Engine):
    """Returns no routing row at all."""

    async def generate(self, prompt_ids, sampling, session):
        done = await super().generate(prompt_ids, sampling, session)
        return dataclasses.replace(done, routing=done.routing[:0])


class NotANumber(Reward):
    def __call__(self, report, spent):
        return np.nan


def test_what_is_unexpected_is_raised_after_the_clean_up(sandboxes):
    for lossy in (Short, Unrouted):
        engine = lossy(harness.script(["ls"], tokenizer))
        attempt = Attempt(sandboxes, engine=engine)
        with pytest.raises(RoutingRecordError, match="TokenStitcher can't stitch trial t: turn 0"):
            attempt()
        assert engine.released == ["t"]
    with pytest.raises(ValueError, match="no script"):
        Attempt(sandboxes, engine=ScriptedEngine({}))()
    with pytest.raises(ValueError, match="trial t: the reward is nan"):
        Attempt(sandboxes, REFERENCE, reward=NotANumber())()

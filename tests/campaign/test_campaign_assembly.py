"""How an experiment runs one trial."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from open_folder import open_folder

from t1x.campaign.assembly import first, named, trial_runner
from t1x.campaign.deadlines import with_deadlines
from t1x.campaign.experiment import Experiment
from t1x.config import load
from t1x.engine.protocol import Decoding
from t1x.engine.scripted import ScriptedEngine
from t1x.rollout.records import Trial
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task, TaskFile
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.storage_folder import batch_path

TASKS = SyntheticPool(split="train", size=3).build()


UNROUTED = ("Campaign.engine = @SGLangEngine()", "SGLangEngine.routed_experts = False", "Campaign.router = @FreeRouting()")
"""Trials here are played by a script, which chooses no experts."""


def experiment(*changes: str) -> Experiment:
    root = load("experiments/quickstart.gin", set=[*UNROUTED, *changes]).root
    assert isinstance(root, Experiment)
    return root


@pytest.fixture
def run() -> Iterator[Callable[[Experiment, Task, str], Trial]]:
    """One trial of an agent that runs one command."""
    with open_folder() as folder:

        def trial_of(spec: Experiment, task: Task, command: str) -> Trial:
            tokenizer = spec.tokenizer.build()
            engine = ScriptedEngine({"t": spec.harness.script([command], tokenizer)})
            host = BubblewrapSandbox(root=folder).build()

            async def main() -> Trial:
                try:
                    return await trial_runner(spec, host, tokenizer, engine, "test", 0, Decoding(1.0))("t", task)
                finally:
                    await host.close()

            return asyncio.run(main())

        yield trial_of


def test_deadlines_are_the_experiments_where_it_has_any() -> None:
    task = TASKS[0]
    assert with_deadlines(task, experiment()) == task
    both = with_deadlines(task, experiment("Experiment.agent_deadline = 7.0", "Experiment.verifier_deadline = 5.0"))
    assert both == dataclasses.replace(task, agent_timeout=7.0, verifier_timeout=5.0)


def test_an_agent_is_stopped_at_the_experiments_deadline(run: Callable[[Experiment, Task, str], Trial]) -> None:
    trial = run(experiment("Experiment.agent_deadline = 1.0"), TASKS[0], "sleep 9")
    assert trial.ended_by is EndedBy.AGENT_DEADLINE
    assert trial.report is not None
    assert trial.report.cause is None


def test_a_verifier_is_stopped_at_the_experiments_deadline(run: Callable[[Experiment, Task, str], Trial]) -> None:
    slow = dataclasses.replace(TASKS[0], tests=(TaskFile("test.sh", b"sleep 9"),))
    trial = run(experiment("Experiment.verifier_deadline = 1.0"), slow, "ls")
    assert trial.ended_by is EndedBy.VERIFIER_ERROR
    assert "the verifier ran longer than 1 s" in trial.error


@pytest.mark.parametrize(("count", "found"), [(2, 2), (9, 3), (None, 3)])
def test_the_first_tasks_or_all(count: int | None, found: int) -> None:
    assert first(TASKS, count) == [TASKS[index] for index in range(found)]


def test_attempts_have_names_of_their_own_and_the_first_keeps_its() -> None:
    one, two = named("eval", 3, first(TASKS, 2)), named("eval", 3, first(TASKS, 2), 2)
    assert list(one) == ["eval-3-0", "eval-3-1"]
    assert list(two) == ["eval-3-0", "eval-3-1", "eval-3-0.1", "eval-3-1.1"]
    assert two["eval-3-1.1"] == two["eval-3-1"] == TASKS[1]


def test_a_trial_is_named_by_its_file_and_a_number(tmp_path: Path) -> None:
    for purpose, step in (("train", 3), ("warmup", 0), ("eval-held_out-greedy", None), ("eval-held_out-greedy", 0)):
        file = batch_path(tmp_path, purpose, step).stem
        assert list(named(purpose, step, first(TASKS, 2), 2)) == [f"{file}-{number}" for number in ("0", "1", "0.1", "1.1")]

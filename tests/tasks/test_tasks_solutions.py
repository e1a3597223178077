"""Every task is run for real: its reference solution resolves it, doing nothing doesn't, nor does carelessness."""

import random

import pytest

from t1x.tasks.families import HELD_OUT, TRAINED, Scene
from t1x.tasks.synthetic import SyntheticPool, assemble

INSTANCES = 3


@pytest.mark.parametrize("family", [*TRAINED, *HELD_OUT], ids=lambda family: family.__name__)
def test_every_family_is_solved_by_its_reference_alone(family, grade, shell, tmp_path):
    rng = random.Random(11)
    for i in range(INSTANCES):
        task = assemble("one", [(family.__name__, family(Scene(rng)))])
        (goal,) = task.solution
        work = tmp_path / f"reference{i}"
        shell((), task, work)
        code, before = grade(task, work)
        assert code == 1
        assert not all(before.values())
        assert task.baseline == {name for name, holds in before.items() if holds}
        work = tmp_path / f"solved{i}"
        shell(goal.commands, task, work)
        assert grade(task, work) == (0, dict.fromkeys(before, True))
        if goal.careless:
            work = tmp_path / f"careless{i}"
            shell(goal.careless, task, work)
            assert grade(task, work)[0] == 1


@pytest.mark.parametrize("split", ["train", "held_out_families"])
def test_a_binary_verifier_tells_only_whether_all_is_done(split, grade, shell, tmp_path):
    """Judged as the verifier that tells each assertion: by it, nothing, less than all and all that is asked."""
    whole, binary = (SyntheticPool(seed=5, split=split, size=12, per_assertion=told).build() for told in (True, False))
    for i in range(len(binary)):
        task = binary[i]
        goals = [goal.commands for goal in task.solution]
        for name, done in (("nothing", []), ("less", goals[1:]), ("solved", goals)):
            work = tmp_path / f"{i}-{name}"
            shell(tuple(command for commands in done for command in commands), task, work)
            _, told = grade(whole[i], work)
            assert grade(task, work) == (0 if name == "solved" else 1, {"every assertion": all(told.values())})
            assert name != "nothing" or task.baseline == frozenset(), "doing nothing is never enough"


@pytest.mark.parametrize("split", ["train", pytest.param("held_out", marks=pytest.mark.ci), "held_out_families"])
def test_tasks_are_solved_by_their_references_and_by_nothing_less(split, grade, shell, tmp_path):
    pool = SyntheticPool(seed=5, split=split, size=25).build()
    for i in range(len(pool)):
        task = pool[i]
        shell((), task, tmp_path / f"{i}-nothing")
        code, before = grade(task, tmp_path / f"{i}-nothing")
        assert code == 1
        assert list(before.values()) == [False] * task.assertions, "no assertion holds before the agent acts"
        assert task.baseline == frozenset()
        shell(tuple(command for goal in task.solution for command in goal.commands), task, tmp_path / f"{i}-solved")
        assert grade(task, tmp_path / f"{i}-solved")[0] == 0
        shell(tuple(command for goal in task.solution[1:] for command in goal.commands), task, tmp_path / f"{i}-less")
        assert grade(task, tmp_path / f"{i}-less")[0] == 1, "without its first sub-goal"

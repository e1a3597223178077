import numpy as np
import pytest

from t1x.tasks.demonstrations import MixedDemonstrations
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import SubGoal, Task

GOALS = (SubGoal("a", ("a1", "a2"), ("a1", "wrong")), SubGoal("b", ("b",)), SubGoal("c", ("c",), ("wrong c",)))
TASK = Task("t", "x", (), (), GOALS)


def demonstrate(task=TASK, index=0, **fields):
    demonstrations = MixedDemonstrations(**fields)
    return demonstrations.commands(task, demonstrations.rng(index))


def test_both_probabilities_zero_give_the_clean_reference():
    for index in range(50):
        assert demonstrate(index=index, skip_probability=0, careless_probability=0) == ("a1", "a2", "b", "c")


def test_first_sub_goal_is_never_skipped():
    assert demonstrate(skip_probability=1, careless_probability=0) == ("a1", "a2")
    assert demonstrate(skip_probability=1, careless_probability=1) == ("a1", "wrong")


def test_careless_where_there_is_such_a_variant():
    assert demonstrate(skip_probability=0, careless_probability=1) == ("a1", "wrong", "b", "wrong c")


def test_shares_are_the_probabilities():
    drawn = [demonstrate(index=i, skip_probability=0.4, careless_probability=0.25) for i in range(4000)]
    error = 4 * np.sqrt(0.25 / 4000)
    assert abs(np.mean(["b" not in d for d in drawn]) - 0.4) < error
    assert abs(np.mean(["wrong" in d for d in drawn]) - 0.25) < error
    kept = [d for d in drawn if "c" in d or "wrong c" in d]
    assert abs(len(kept) / 4000 - 0.6) < error
    assert abs(np.mean(["wrong c" in d for d in kept]) - 0.25) < error * 1.5


def test_same_seed_same_demonstration():
    task = SyntheticPool(split="demo", size=5).build()[4]
    assert demonstrate(task, 4, seed=3) == demonstrate(task, 4, seed=3)
    assert len({demonstrate(TASK, 4, seed=seed) for seed in range(20)}) > 1


def test_task_without_solution_is_named():
    with pytest.raises(ValueError, match=r"task bare has no reference solution.*solve\.sh"):
        demonstrate(Task("bare", "x", (), (), ()))

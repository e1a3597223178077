import pytest

from t1x.tasks.corpus import task_texts
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Run, Task


def test_corpus_holds_instruction_commands_outputs():
    pool = SyntheticPool(split="demo", size=2000).build()
    task = next(pool[i] for i in range(2000) if pool[i].families == ("delete_named",))
    (goal,) = task.solution
    named = goal.commands[1].removeprefix("rm ")
    assert list(task_texts(task)) == [task.instruction, goal.commands[0], named, goal.commands[1], "done"]


def test_a_task_that_needs_a_sandbox_is_refused():
    with pytest.raises(ValueError, match="task t: its environment is made by commands"):
        list(task_texts(Task("t", "x", (Run("rm -rf /", "/"),), (), ())))

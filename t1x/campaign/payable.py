"""Whether trials of an experiment's tasks can be paid, before any of them runs."""

from collections.abc import Iterable

from t1x.campaign.assembly import first
from t1x.campaign.experiment import Experiment
from t1x.grading.reward import Reward
from t1x.tasks.pool import TaskPool
from t1x.tasks.task import Task


def check_payable(experiment: Experiment, training: TaskPool | None, suites: dict[str, TaskPool]) -> None:
    """Raises `ValueError` for the first training task, or task of a suite's passes, that the experiment's reward objects to."""
    if training is not None:
        _check(experiment.reward, first(training, None), "pool")
    for suite in experiment.suites:
        for each in suite.passes():
            _check(experiment.reward, first(suites[suite.name], each.tasks), f"suite {suite.name}")


def _check(reward: Reward, tasks: Iterable[Task], where: str) -> None:
    for task in tasks:
        if reason := reward.task_objection(task):
            raise ValueError(f"{where}, task {task.name}: reward {type(reward).__name__}: {reason}")

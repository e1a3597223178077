"""Whether trials of an experiment's tasks can be paid, before any of them runs."""

from collections import Counter
from collections.abc import Sequence

from t1x.campaign.assembly import first
from t1x.campaign.experiment import Experiment
from t1x.grading.reward import Reward
from t1x.tasks.folder import FolderTasks
from t1x.tasks.pool import TaskPool

NAMED = 3
"""Tasks that are named; the others are counted."""


def check_payable(experiment: Experiment, training: TaskPool | None, suites: dict[str, TaskPool]) -> None:
    """Raises `ValueError` for training tasks, or tasks of a suite's passes, that the experiment's reward objects to."""
    if training is not None:
        _check(experiment.reward, training, None, "the training pool")
    for suite in experiment.suites:
        for each in suite.passes():
            _check(experiment.reward, suites[suite.name], each.tasks, f"suite {suite.name}")


def _check(reward: Reward, pool: TaskPool, count: int | None, where: str) -> None:
    tasks = first(pool, count)
    reasons = {task.name: reason for task in tasks if (reason := reward.task_objection(task))}
    if not reasons:
        return
    names = list(reasons)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    raise ValueError(
        f"{type(reward).__name__} can't pay {len(names)} of the {len(tasks)} tasks of {where} ({', '.join(names[:NAMED])}{more}): "
        f"{reasons[names[0]]}" + (_checked(pool, names) if isinstance(pool, FolderTasks) else "")
    )


def _checked(pool: FolderTasks, names: Sequence[str]) -> str:
    """What `t1x tasks check` knows of these tasks, and what to do about it."""
    known = [pool.faults[name] for name in names]
    if unchecked := known.count(None):
        return f". Not checked as they are: {unchecked} of them; run `t1x tasks check {pool.path}`"
    found = Counter(fault for faults in known for fault in set(faults or ()))
    if not found:
        return ". The check found no fault in them"
    clean = known.count(())
    rest = f", in {clean} no fault" if clean else ""
    listed = ", ".join(f"{fault} in {number}" for fault, number in found.most_common())
    without = tuple(sorted({max(faults, key=lambda fault: found[fault]) for faults in known if faults}))
    return f". The check found {listed}{rest}; what leaves out those with a fault: FolderPool.without = {without!r}"

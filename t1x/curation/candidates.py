"""The tasks of a pool one by one, so that a malformed one is found without ending the search."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.tasks.digest import folder_digest, task_digest
from t1x.tasks.folder import FolderPool, read_task, task_folders
from t1x.tasks.named import NamedPool
from t1x.tasks.pool import Pool
from t1x.tasks.task import Run, Task


@dataclass(frozen=True, slots=True)
class Candidate:
    """One task as the pool holds it."""

    name: str
    digest: str
    """See `t1x.tasks.digest`."""
    task: Task | None
    """None where it can't be read."""
    error: str = ""
    """Why it can't."""


def candidates(pool: Pool, adapted: Callable[[Task], Task] = lambda task: task) -> list[Candidate]:
    """All of them, in the pool's order, each as an experiment has `adapted` it. Raises `ValueError` where the pool itself can't be
    opened."""
    folder = pool_folder(pool)
    if folder is not None:
        return [_read(each, adapted) for each in task_folders(folder)]
    tasks = pool.build()
    found = [tasks[index] for index in range(len(tasks))]
    return [Candidate(task.name, task_digest(task), adapted(task)) for task in found]


def pool_folder(pool: Pool) -> Path | None:
    """The folder that a pool's tasks lie in; None for one that has no such."""
    if isinstance(pool, NamedPool):
        return pool_folder(pool.tasks)
    return pool.path if isinstance(pool, FolderPool) else None


def duplicates(found: Sequence[Candidate]) -> dict[str, str]:
    """Name of each task that is the same job as an earlier one (instruction but for white space, environment, tests), and the name
    of the first such."""
    first: dict[bytes, str] = {}
    again: dict[str, str] = {}
    for each in found:
        if each.task is not None:
            job = _job(each.task)
            if first.setdefault(job, each.name) != each.name:
                again[each.name] = first[job]
    return again


def _read(folder: Path, adapted: Callable[[Task], Task]) -> Candidate:
    try:
        digest = folder_digest(folder)
        return Candidate(folder.name, digest, adapted(read_task(folder)))
    except ValueError as error:
        return Candidate(folder.name, digest, None, str(error))
    except OSError as error:
        return Candidate(folder.name, "", None, f"{error.filename or folder}: can't be read ({error.strerror})")


def _job(task: Task) -> bytes:
    steps = [(step.command, step.folder, step.variables) if isinstance(step, Run) else step for step in task.environment]
    return hashlib.sha256(repr((task.instruction.split(), task.workdir, steps, task.tests)).encode()).digest()

"""Writes a pool as folders in Harbor's layout, which `FolderPool` reads back to equal tasks."""

import json
from pathlib import Path

from t1x.tasks.disk import write_files
from t1x.tasks.pool import TaskPool
from t1x.tasks.solve_script import write_script
from t1x.tasks.task import Task, TaskFile

IMAGE = "python:3.11-slim-bookworm"
"""What exported tasks are based on where Docker runs them: bash, coreutils and the verifier's python3."""


def export_pool(pool: TaskPool, out: Path, count: int | None = None) -> int:
    """Writes the first `count` tasks (all where None) into the new or empty folder `out`; returns how many. Raises `ValueError`."""
    count = len(pool) if count is None else count
    if not 1 <= count <= len(pool):
        raise ValueError(f"{count} tasks can't be exported from a pool of {len(pool)}; choose 1 to {len(pool)}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ValueError(f"{out}: not empty; export into a new folder")
        for index in range(count):
            write_task(pool[index], out)
    except OSError as error:
        raise ValueError(
            f"{error.filename or out}: can't be written ({error.strerror}); choose a folder you may write to"
        ) from None
    return count


def write_task(task: Task, out: Path) -> None:
    """One task into `out/<its name>/`."""
    if Path(task.name).name != task.name or task.name.startswith("."):
        raise ValueError(f"{task.name!r} can't be the name of a folder; rename the task")
    folder = out / task.name
    dockerfile = f"FROM {IMAGE}\nWORKDIR {task.workdir}\n" + (f"COPY files/ {task.workdir}/\n" if task.environment else "")
    texts = {"task.toml": task_toml(task), "instruction.md": task.instruction + "\n", "environment/Dockerfile": dockerfile}
    write_files([TaskFile(path, text.encode()) for path, text in texts.items()], folder)
    write_files([step for step in task.environment if isinstance(step, TaskFile)], folder / "environment" / "files")
    write_files(task.tests, folder / "tests")
    if task.solution:
        try:
            script = write_script(task.solution)
        except ValueError as error:
            raise ValueError(f"task {task.name}: {error}") from None
        write_files([TaskFile("solve.sh", script.encode(), 0o755)], folder / "solution")


def task_toml(task: Task) -> str:
    """Harbor's settings, and under `[metadata]` what t1x knows beyond them. A JSON string is a TOML string."""
    assertions = f"assertions = {task.assertions}\n" if task.assertions is not None else ""
    return (
        f'version = "1.0"\n\n[metadata]\nfamilies = {json.dumps(list(task.families), ensure_ascii=False)}\n'
        f"difficulty = {json.dumps(task.difficulty, ensure_ascii=False)}\n{assertions}\n"
        f"[agent]\ntimeout_sec = {task.agent_timeout}\n\n[verifier]\ntimeout_sec = {task.verifier_timeout}\n"
    )

"""Writes a pool as folders in Harbor's layout, which `FolderPool` reads back to equal tasks."""

import json
from pathlib import Path

from t1x.tasks.disk import write_files
from t1x.tasks.dockerfile_write import write_environment
from t1x.tasks.pool import TaskPool
from t1x.tasks.solve_script import write_script
from t1x.tasks.task import Task, TaskFile


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
    texts = {"task.toml": task_toml(task), "instruction.md": task.instruction + "\n"}
    try:
        environment = write_environment(task)
        script = write_script(task.solution) if task.solution else None
    except ValueError as error:
        raise ValueError(f"task {task.name}: {error}") from None
    write_files([TaskFile(path, text.encode()) for path, text in texts.items()], folder)
    write_files(environment, folder / "environment")
    write_files(task.tests, folder / "tests")
    if script is not None:
        write_files([TaskFile("solve.sh", script.encode(), 0o755)], folder / "solution")


def task_toml(task: Task) -> str:
    """Harbor's settings, and under `[metadata]` what t1x knows beyond them. A JSON string is a TOML string."""
    known: dict[str, object] = {"families": list(task.families), "difficulty": task.difficulty, "assertions": task.assertions}
    tables: dict[str, dict[str, object]] = {
        "metadata": {name: value for name, value in known.items() if value is not None},
        "agent": {"timeout_sec": task.agent_timeout},
        "verifier": {"timeout_sec": task.verifier_timeout, "mode": task.verifier},
        "environment": {"build_timeout_sec": task.build_timeout},
    }
    lines = ['version = "1.0"']
    for table, settings in tables.items():
        lines += ["", f"[{table}]", *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items())]
    return "\n".join(lines) + "\n"

"""A pool of tasks on disk in Harbor's layout, one folder a task:

    NAME/task.toml  instruction.md  environment/Dockerfile  tests/test.sh or tests/test_*.py  [solution/solve.sh]

Every task is read when the pool is opened, so that a malformed one is found then.
"""

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from t1x.config import Role
from t1x.config.requirements import folder
from t1x.tasks.checked import CheckedTasks
from t1x.tasks.disk import read_files
from t1x.tasks.dockerfile import environment
from t1x.tasks.manifest import Fault
from t1x.tasks.pool import Pool, TaskPool
from t1x.tasks.solve_script import read_script
from t1x.tasks.task import Mode, Task, TaskFile, is_pytest


class FolderPool(Pool):
    """Tasks in Harbor's layout, in the order of their folders' names. What `t1x tasks check` found out about them is theirs."""

    path: Annotated[Path, Role.SCALE]
    """Folder that holds one folder per task. It stands for the tasks in it: another folder is another run."""
    without: Annotated[tuple[Fault, ...], Role.SCALE] = ()
    """Tasks in which `t1x tasks check` found one of these faults are left out, e.g. ('solution_fails', 'flaky'); every task must
    have been checked then."""

    def missing(self) -> list[str]:
        return folder(self.path, "FolderPool.path; it holds one folder per task")

    def build(self) -> "FolderTasks":
        return FolderTasks(self.path, self.without)


class FolderTasks(TaskPool):
    """All tasks of a folder, read at once. Raises `ValueError` naming folder and file of the first malformed task."""

    def __init__(self, path: Path, without: Collection[Fault] = ()) -> None:
        checked = CheckedTasks(path)
        folders = checked.without(task_folders(path), without)
        self.path = path
        self._tasks = [checked.known(read_task(folder), folder) for folder in folders]
        self.faults = {folder.name: checked.faults(folder) for folder in folders}
        """What `t1x tasks check` found in each task, by name; None for one that wasn't checked as it is."""
        checked.say_stale()

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[index]


def task_folders(path: Path) -> list[Path]:
    """Those of a pool, by name. Raises `ValueError` where there is none, and for the folder of a task."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder; FolderPool.path names a folder that holds one folder per task")
    if is_task(path):
        raise ValueError(f"{path}: this is a task; give the folder above it, {path.resolve().parent}")
    folders = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not any(map(is_task, folders)):
        raise ValueError(f"{path}: holds no task; each task is a folder of its own in it, with a task.toml")
    return folders


def is_task(path: Path) -> bool:
    """Whether a folder is one task, well-formed or not."""
    return (path / "task.toml").exists()


class Metadata(BaseModel):
    """`[metadata]`; other keys are the task author's."""

    families: tuple[str, ...] = ()
    difficulty: str = "unknown"
    assertions: int | None = Field(None, ge=1)


class Agent(BaseModel):
    """`[agent]`; absent: what `Task` says."""

    timeout_sec: float | None = Field(None, gt=0)


class Verifier(BaseModel):
    """`[verifier]`; absent: what `Task` says, and the mode that the files in tests/ ask for."""

    timeout_sec: float | None = Field(None, gt=0)
    mode: Mode | None = None


class Environment(BaseModel):
    """`[environment]`. What else Harbor has there is for its containers; sandboxes have limits of their own."""

    build_timeout_sec: float | None = Field(None, gt=0)
    workdir: str | None = None
    """In place of the Dockerfile's last WORKDIR."""
    gpus: int = Field(0, le=0)
    """No sandbox has one."""


class TaskToml(BaseModel):
    """What t1x reads of task.toml."""

    metadata: Metadata = Metadata()
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    environment: Environment = Environment()


def read_task(folder: Path) -> Task:
    """One task. Raises `ValueError` naming folder and file."""
    settings = _read_toml(folder / "task.toml")
    instruction = _read_text(folder / "instruction.md", "write there what the agent is asked to do").strip()
    if not instruction:
        raise ValueError(f"{folder / 'instruction.md'}: empty; write there what the agent is asked to do")
    tests = read_files(folder / "tests")
    workdir, steps, variables = environment(folder / "environment", settings.environment.workdir)
    solve = folder / "solution" / "solve.sh"
    given: dict[str, Any] = {
        "agent_timeout": settings.agent.timeout_sec,
        "verifier_timeout": settings.verifier.timeout_sec,
        "build_timeout": settings.environment.build_timeout_sec,
    }
    return Task(
        name=folder.name,
        instruction=instruction,
        environment=steps,
        tests=tests,
        solution=read_script(_read_text(solve, "")) if solve.exists() else (),
        families=settings.metadata.families,
        difficulty=settings.metadata.difficulty,
        assertions=settings.metadata.assertions,
        workdir=workdir,
        variables=variables,
        verifier=_verifier(folder / "tests", tests, settings.verifier.mode),
        **{name: value for name, value in given.items() if value is not None},
    )


def _verifier(folder: Path, tests: Collection[TaskFile], mode: Mode | None) -> Mode:
    """How the tests are run: as task.toml says, or by pytest where there is Harbor's test_outputs.py or no other test."""
    has_pytest = any(map(is_pytest, tests))
    names = {file.path for file in tests}
    if mode is None:
        mode = "pytest" if "test_outputs.py" in names or (has_pytest and "test.sh" not in names) else "script"
    if mode == "pytest":
        if not has_pytest:
            raise ValueError(f'{folder}: no test_*.py, though [verifier] mode is "pytest"; write one')
        return mode
    if "test.sh" not in names:
        raise ValueError(
            f"{folder / 'test.sh'}: missing; a task needs a verifier: a test.sh that writes /logs/verifier/ctrf.json, or a "
            "test_outputs.py for pytest"
        )
    return mode


def _read_text(path: Path, remedy: str) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise ValueError(f"{path}: missing; {remedy}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ValueError(f"{path}: can't be read ({error.strerror})") from None


def _read_toml(path: Path) -> TaskToml:
    text = _read_text(path, "each folder in a pool is a task and needs one; move other folders elsewhere")
    try:
        return TaskToml.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {field} = {first['input']!r}: {first['msg']}") from None

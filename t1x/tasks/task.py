"""What one task is: an instruction, the files it starts from, a held-out verifier, a reference solution."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One regular file of a task, relative to the folder that it is put into."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class SubGoal:
    """One part of a task's reference solution."""

    family: str
    """What kind of shell work it is, e.g. `sort_lines`."""
    commands: tuple[str, ...]
    """One command a turn; run in order they reach the sub-goal."""
    careless: tuple[str, ...] = ()
    """The same work done wrong in a way people do it (a forgotten flag); empty where there is no such variant."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task. The agent sees `instruction` and `environment`; never `tests` or `solution`."""

    name: str
    """Unique in its pool; safe as a folder name."""
    instruction: str
    environment: tuple[TaskFile, ...]
    """Files that lie in `workdir` when the agent starts."""
    tests: tuple[TaskFile, ...]
    """The held-out verifier; `test.sh` is run and writes a CTRF report to /logs/verifier/ctrf.json."""
    solution: tuple[SubGoal, ...]
    """Reference solution; empty where the pool has none."""
    families: tuple[str, ...] = ()
    difficulty: str = "unknown"
    assertions: int | None = None
    """How many assertions the verifier reports (T of the report), where the pool knows it."""
    workdir: str = "/app"
    agent_timeout: float = 3600.0
    """Seconds for the whole agent phase."""
    verifier_timeout: float = 900.0
    """Seconds for the verifier."""

"""What one task is: an instruction, the files it starts from, a held-out verifier, a reference solution."""

import posixpath
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

Mode = Literal["script", "pytest", "harbor"]
"""How a verifier is run. `script`: `test.sh` writes a CTRF report to /logs/verifier/ctrf.json. `pytest`: the tests are pytest's,
run by t1x's judge. `harbor`: `test.sh` writes reward.json or reward.txt there, which whatever it runs can write too: weaker."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One regular file of a task, relative to the folder that it is put into."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Run:
    """One command that makes a task's environment, inside the sandbox and without a network, before the agent acts."""

    command: str
    """For `/bin/sh -c`."""
    folder: str
    """Absolute; where it runs."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables (name, value) that are set by then, in the order of their names."""
    place: str = field(default="", compare=False)
    """Where it stands, for messages: `.../environment/Dockerfile:5: RUN`."""


def is_pytest(file: TaskFile) -> bool:
    """Whether it is one of the files that t1x's judge gives to pytest, among a task's tests."""
    return fnmatchcase(posixpath.basename(file.path), "test_*.py")


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
    environment: tuple[TaskFile | Run, ...]
    """What makes the work folder, in order: files relative to `workdir`, and commands."""
    tests: tuple[TaskFile, ...]
    """The held-out verifier; `verifier` says how it is run."""
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
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables (name, value) of the agent's commands, in the order of their names."""
    build_timeout: float = 600.0
    """Seconds for the commands of `environment` together."""
    baseline: frozenset[str] | None = None
    """Names of the assertions that pass before the agent has acted; None where nobody has looked."""
    verifier: Mode = "script"

"""A task's environment as the `environment/` folder that `t1x.tasks.dockerfile` reads back to the same."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from t1x.tasks.dockerfile_words import ESCAPE, quote
from t1x.tasks.task import Run, Task, TaskFile

IMAGE = "python:3.11-slim-bookworm"
"""What exported tasks are based on where Docker runs them: bash, coreutils and the verifier's python3."""


def write_environment(task: Task) -> list[TaskFile]:
    """The Dockerfile and the files that it copies. Raises `ValueError` for what a Dockerfile can't say."""
    files: list[TaskFile] = []
    lines = [f"FROM {IMAGE}"]
    folder, variables = "", dict[str, str]()
    groups = groupby(task.environment, key=lambda step: isinstance(step, TaskFile))
    for number, (are_files, steps) in enumerate(groups):
        if are_files:
            lines += _workdir(folder, task.workdir)
            folder = task.workdir
            copied = f"files{number or ''}"
            lines.append(f"COPY {copied}/ ./")
            files += [TaskFile(f"{copied}/{step.path}", step.content, step.mode) for step in steps if isinstance(step, TaskFile)]
            continue
        for step in steps:
            assert isinstance(step, Run)
            lines += [*_env(variables, dict(step.variables)), *_workdir(folder, step.folder), f"RUN {_command(step.command)}"]
            folder, variables = step.folder, dict(step.variables)
    lines += [*_env(variables, dict(task.variables)), *_workdir(folder, task.workdir)]
    return [TaskFile("Dockerfile", "".join(f"{line}\n" for line in lines).encode()), *files]


def _workdir(current: str, folder: str) -> Iterator[str]:
    if folder != current:
        yield f"WORKDIR {quote(folder)}"


def _env(current: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[str]:
    if gone := sorted(current.keys() - variables.keys()):
        raise ValueError(f"a Dockerfile can't unset {', '.join(gone)}; set it from there on, or never")
    for name, value in variables.items():
        if current.get(name) != value:
            yield f"ENV {name}={quote(value)}"


def _command(command: str) -> str:
    """As it stands where a line of a Dockerfile holds it, else in the JSON form."""
    plain = command and command == command.strip() and not command.startswith(("[", "--")) and not set(command) & set("\n\r\f\v\0<")
    return command if plain and not command.endswith(ESCAPE) else json.dumps(["/bin/sh", "-c", command], ensure_ascii=False)

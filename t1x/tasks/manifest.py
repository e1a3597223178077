"""What `t1x tasks check` found out about a pool, kept in the pool's folder as `t1x-manifest.json`: one line a task.

An entry holds as long as its checksum is that of the task; see `t1x.tasks.digest`.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator

NAME = "t1x-manifest.json"
VERSION: Literal[1] = 1
"""Of this format and of what the check looks at: entries of another version say nothing about this one's faults."""

Fault = Literal[
    "unreadable",
    "environment_fails",
    "verifier_unusable",
    "in_process",
    "asserts_nothing",
    "passes_untouched",
    "no_solution",
    "solution_fails",
    "flaky",
    "near_deadline",
    "duplicate",
    "sandbox_fails",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class Record(BaseModel):
    """Part of a manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Finding(Record):
    """One thing that is wrong with a task."""

    fault: Fault
    detail: str


class Seconds(Record):
    """How long the parts of a check took; None where there was no such."""

    environment: float | None = None
    """To make the sandbox with the task's environment."""
    solution: float | None = None
    """The reference solution, the longest of its runs."""
    verifier: float | None = None
    """The verifier, the longest of its runs."""


class Entry(Record):
    """One task."""

    sha256: str
    assertions: tuple[str, ...] | None = None
    """Names of what the verifier asserts, in its order; None where it gave no sound record of each."""
    baseline: tuple[str, ...] | None = None
    """Those that pass when nothing was done; None where that run had no sound record, or other names than the solution's."""
    seconds: Seconds = Seconds()
    findings: tuple[Finding, ...] = ()

    @model_validator(mode="after")
    def _baseline_is_asserted(self) -> Self:
        if unknown := set(self.baseline or ()) - set(self.assertions or ()):
            raise ValueError(f"baseline has {min(unknown)!r}, which isn't among the assertions")
        return self


class Settings(Record):
    """How the tasks were checked: an entry made under others isn't gone on from."""

    sandbox: str
    sandbox_fields: Mapping[str, JsonValue] = {}
    """Its limits and whatever else of it may change what a task does."""
    repeats: int
    """Runs of each reference solution."""
    agent_deadline: float | None = None
    """Seconds, instead of the tasks' own; likewise `verifier_deadline`."""
    verifier_deadline: float | None = None


class Manifest(Record):
    """All tasks of a pool, by name."""

    version: Literal[1] = VERSION
    settings: Settings
    tasks: Mapping[str, Entry]


def read_manifest(path: Path) -> Manifest | None:
    """None where there is none. Raises `ValueError` for a file that isn't a manifest of this version."""
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its text"
        raise ValueError(f"{path}: not a manifest of this t1x ({where}: {first['msg']}); remove it") from None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Whole or not at all, one line a task. Raises `OSError`."""
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {entry.model_dump_json()}" for name, entry in manifest.tasks.items()]
    text = f'{{"version": {manifest.version}, "settings": {manifest.settings.model_dump_json()}, "tasks": {{\n'
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(text + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)

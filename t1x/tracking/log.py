"""The metrics of a run as they came, in `log.jsonl`: one line a call, `{"step": 3, "time": 1.7e9, "metrics": {name: value}}`.

Invariants:
- a line is written only for a step whose every metric was sound, and its process has handed it over before the next step begins;
- only the last line can be torn, by a process that was killed; such a line was never written.
"""

import json
import math
import os
import posixpath
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Self

LOG = "log.jsonl"
NAME = re.compile(r"[\w./ :-]{1,250}")
"""What MLflow accepts as the name of a metric or parameter (`mlflow.utils.validation`), its rule on paths aside."""


def check_name(what: str, name: str) -> None:
    """Raises `ValueError` for a name that MLflow refuses."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{what} {name!r}: a name has 1 to 250 letters, digits, spaces and the characters _ - . : /")
    if posixpath.normpath(name) != name or name.startswith(("/", "..")) or name == ".":
        raise ValueError(f"{what} {name!r}: a name is a relative path without empty, '.' and '..' parts")


def check_value(name: str, value: object) -> float:
    """The value as a float. Raises `ValueError` unless it is a finite real number (a bool and a one-element tensor aren't)."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"metric {name!r} is {value!r}, a {type(value).__name__}: give a number, or None where it is missing")
    if not math.isfinite(value):
        raise ValueError(f"metric {name!r} is {value}: give a finite number, or None where it is missing")
    return float(value)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log."""

    step: int
    time: float
    """Unix time."""
    metrics: Mapping[str, float | None]
    """None where a value is missing."""


def read_log(folder: Path) -> list[LogEntry]:
    """The log of a run's folder, in order; empty where there is none yet. A torn last line is left out. Raises `ValueError` naming
    any other line that isn't one."""
    file = folder / LOG
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    entries = []
    for number, line in enumerate(content[: _whole(content)].splitlines(), 1):
        try:
            entries.append(LogEntry(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}:{number}: the line is damaged ({error}); take it out to go on without its metrics") from error
    return entries


def cut_log(folder: Path, size: int) -> None:
    """Cuts a run's log to its first `size` bytes, less a torn line at their end."""
    try:
        with (folder / LOG).open("r+b") as file:
            file.truncate(_whole(file.read(size)))
    except FileNotFoundError:
        return


class MetricLog:
    """The open `log.jsonl` of a run."""

    def __init__(self, folder: Path, kept: int | None = None) -> None:
        """Makes the folder. A log that is there is gone on with; where `kept` is given, after its first so many bytes only, and
        with steps that go on from those. Raises `ValueError` when it can't be written."""
        self.before: list[LogEntry] = []
        """What was kept."""
        self._last: dict[str, int] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if kept is not None:
                cut_log(folder, kept)
                self.before = read_log(folder)
                self._last = {name: entry.step for entry in self.before for name in entry.metrics}
            self._file = (folder / LOG).open("a", encoding="utf-8")
        except OSError as error:
            raise ValueError(f"the run folder {folder} can't be written ({error.strerror}): choose another runs folder") from error

    def write(self, values: Mapping[str, object], step: int) -> dict[str, float]:
        """Checks one step's metrics, writes them, and returns those that aren't missing. Raises `ValueError` naming the metric."""
        checked: dict[str, float | None] = {}
        for name, value in values.items():
            check_name("metric", name)
            checked[name] = None if value is None else check_value(name, value)
            if step <= self._last.get(name, step - 1):
                raise ValueError(
                    f"metric {name!r} was already logged at step {self._last[name]} and can't be logged at step {step}"
                )
        self._last.update(dict.fromkeys(checked, step))
        self._file.write(json.dumps({"step": step, "time": time.time(), "metrics": checked}) + "\n")
        self._file.flush()
        return {name: value for name, value in checked.items() if value is not None}

    @property
    def position(self) -> int:
        """Bytes so far. They are on disk when this returns, even if the machine fails then."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _whole(content: bytes) -> int:
    """Bytes of the lines that are whole."""
    return content.rfind(b"\n") + 1

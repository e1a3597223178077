"""The metrics of a run as they came, in `log.jsonl`: one line a call, `{"step": 3, "time": 1.7e9, "metrics": {name: value}}`.

Invariant: a line is written only for a step whose every metric was sound, and it is on disk before the next step begins.
"""

import json
import math
import posixpath
import re
import time
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Self

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


class MetricLog:
    """The open `log.jsonl` of a run."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder. Raises `ValueError` when it can't be written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / "log.jsonl").open("a", encoding="utf-8")
        except OSError as error:
            raise ValueError(f"the run folder {folder} can't be written ({error.strerror}): choose another runs folder") from error
        self._last: dict[str, int] = {}

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

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

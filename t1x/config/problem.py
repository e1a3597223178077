"""What is wrong with a configuration, and where.

Invariant: a `ConfigError` names every problem that was found in a file, not only the first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SETTING = "--set"
"""Stands for the file where a statement comes from the command line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a statement stands."""

    file: str
    """Path as a user would write it, or `--set`."""
    line: int | None = None
    """Line in the file, or number of the `--set`, from 1; None for a file as a whole."""
    text: str | None = None
    """What the `--set` says; None for a file."""

    def __str__(self) -> str:
        if self.text is not None:
            return f"{self.file} {_cut(self.text)!r}"
        return self.file if self.line is None else f"{self.file}:{self.line}"


Origins = Mapping[str, Origin | None]
"""Where each field of a tree was set, by its path (`Campaign.reward.scale`, `Campaign.suites[0].name`); None for a default."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what it is, what to do, and where."""

    message: str
    origin: Origin | None = None

    def __str__(self) -> str:
        return self.message if self.origin is None else f"{self.origin}: {self.message}"


class ConfigError(ValueError):
    """A configuration that can't be used. Prints all of its problems, in the order of files and lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = _in_file_order(problems)
        assert self.problems, "a ConfigError has at least one problem"
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        return "\n".join([f"{len(self.problems)} problems", *(f"  {problem}" for problem in self.problems)])


def _cut(text: str) -> str:
    """A text of at most 61 characters, cut in the middle."""
    return text if len(text) <= 61 else f"{text[:40]}…{text[-20:]}"


def _in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once; files in the order in which they first appear, lines in theirs."""
    unique = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(problem.origin.file for problem in unique if problem.origin))

    def key(problem: Problem) -> tuple[int, int]:
        if problem.origin is None:
            return len(files), 0
        return files.index(problem.origin.file), problem.origin.line or 0

    return tuple(sorted(unique, key=key))

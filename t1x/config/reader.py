"""A Gin file and everything it includes, as one list of statements.

Invariants:
- statements stand in the order in which they take effect, so that the last one wins: included files, the file itself, each `--set`;
- a file that is included twice is read once, where it came first, so that it can't undo what stands between.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from t1x.config.places import find, shown
from t1x.config.problem import SETTING, Origin, Problem
from t1x.config.statement import Binding, Definition, Import, Include, Statement, parse


@dataclass
class Source:
    """What was read."""

    statements: list[Binding | Definition] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    """Number of statements after each file and each `--set`."""
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True
    """Whether every statement could be read."""

    def fail(self, problem: Problem) -> None:
        """Notes a problem that keeps some statements from being read."""
        self.problems.append(problem)
        self.complete = False


def read(path: Path, settings: Sequence[str] = ()) -> Source:
    """Reads a file with its includes, then each of `settings` (Gin text, the values of `--set`). Executes `import` statements."""
    source = Source()
    _read_file(path, source, inside=(), done=set())
    for number, text in enumerate(settings, start=1):
        _read_setting(text, Origin(SETTING, number, text), source)
    return source


def _read_file(path: Path, source: Source, inside: tuple[Path, ...], done: set[Path]) -> None:
    name = shown(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        source.fail(Problem(f"isn't UTF-8 text: {error.reason} at byte {error.start}", Origin(name)))
        return
    done.add(path.resolve())
    statements, problems = parse(text, lambda line: Origin(name, line))
    for problem in problems:
        source.fail(problem)
    source.problems += _repeated(statements)
    at_top = True
    for statement in statements:
        if isinstance(statement, Include):
            if not at_top:
                message = "an include stands at the top of a file, above its bindings, so that they win over what is included"
                source.problems.append(Problem(message, statement.origin))
            _read_include(statement, path, source, (*inside, path.resolve()), done)
        else:
            at_top = at_top and isinstance(statement, Import)
            _take(statement, source)
    source.layers.append(len(source.statements))


def _read_include(include: Include, path: Path, source: Source, inside: tuple[Path, ...], done: set[Path]) -> None:
    found = find(include.file, beside=path.parent)
    if found is None:
        message = f"can't find {include.file!r} beside this file, in the working directory, or in the t1x package"
        source.fail(Problem(message, include.origin))
    elif (target := found.resolve()) in inside:
        circle = " -> ".join(shown(step) for step in (*inside[inside.index(target) :], target))
        source.fail(Problem(f"the files include each other in a circle: {circle}", include.origin))
    elif target not in done:
        _read_file(found, source, inside, done)


def _read_setting(text: str, origin: Origin, source: Source) -> None:
    statements, problems = parse(text, lambda line: origin)
    for problem in problems:
        source.fail(problem)
    if not statements and not problems:
        source.problems.append(Problem("sets nothing; write e.g. --set 'Campaign.seed = 1'", origin))
    for statement in statements:
        if isinstance(statement, Include):
            source.problems.append(Problem("an include stands in a file; --set takes bindings and macros", origin))
        else:
            _take(statement, source)
    source.layers.append(len(source.statements))


def _take(statement: Binding | Definition | Import, source: Source) -> None:
    if not isinstance(statement, Import):
        source.statements.append(statement)
        return
    try:
        importlib.import_module(statement.module)
    except Exception as error:  # whatever a user's module raises is that module's fault
        message = f"import {statement.module} fails: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            message += "; install it or put its folder on PYTHONPATH"
        source.fail(Problem(message, statement.origin))


def _repeated(statements: list[Statement]) -> list[Problem]:
    """What one file sets twice."""
    first: dict[str, Origin] = {}
    problems = []
    for statement in statements:
        if isinstance(statement, Binding | Definition):
            earlier = first.setdefault(statement.name, statement.origin)
            if earlier is not statement.origin:
                message = f"{statement.name} is set twice in this file, first in line {earlier.line}; remove one"
                problems.append(Problem(message, statement.origin))
    return problems

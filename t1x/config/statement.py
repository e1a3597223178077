"""The statements of a Gin file as values, read with Gin's own parser.

Invariant: Gin's registry and its parsed configuration, which are global, are never touched.
"""

import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gin import config_parser

from t1x.config.problem import Origin, Problem


@dataclass(frozen=True, slots=True)
class Reference:
    """`@scope/Name()` as a value; `called` is false where the parentheses are missing."""

    scope: str
    name: str
    called: bool = True

    def __str__(self) -> str:
        return f"@{scoped(self.scope, self.name)}{'()' if self.called else ''}"


@dataclass(frozen=True, slots=True)
class Macro:
    """`%NAME` as a value."""

    name: str

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """`scope/Component.field = value`. Two bindings are equal only where they are the same statement."""

    scope: str
    component: str
    field: str
    value: Any
    origin: Origin

    @property
    def name(self) -> str:
        """What stands left of the equals sign."""
        return scoped(self.scope, f"{self.component}.{self.field}")


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """`NAME = value`: what the macro `%NAME` stands for."""

    name: str
    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Include:
    """`include 'file.gin'`."""

    file: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Import:
    """`import module`: registers the components that the module declares."""

    module: str
    origin: Origin


Statement = Binding | Definition | Include | Import


def scoped(scope: str, name: str) -> str:
    """`scope/name`, or the name alone in the empty scope."""
    return f"{scope}/{name}" if scope else name


def values_in(value: Any, keep: Callable[[Any], bool]) -> Iterator[Any]:
    """Every value for which `keep` holds, in `value` itself and in the lists, tuples, sets and dicts (keys too) of it."""
    if keep(value):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from values_in(key, keep)
            yield from values_in(item, keep)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from values_in(item, keep)


class _Values(config_parser.ParserDelegate):
    """Makes references and macros into values."""

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> Reference:
        scope, _, name = scoped_configurable_name.rpartition("/")
        return Reference(scope, name, evaluate)

    def macro(self, macro_name: str) -> Macro:
        return Macro(macro_name)


def parse(text: str, origin: Callable[[int], Origin]) -> tuple[list[Statement], list[Problem]]:
    """The statements of a Gin text in order, and its syntax errors: after one, reading goes on with the next line that starts at
    the margin. `origin` makes a place of a line number."""
    statements: list[Statement] = []
    problems: list[Problem] = []
    try:
        parser = config_parser.ConfigParser(io.StringIO(text), _Values())
        while True:
            try:
                statement = parser.parse_statement()
            except (SyntaxError, TypeError) as error:
                if isinstance(error, IndentationError):
                    raise
                line = getattr(error, "lineno", None) or parser.current_token.start[0]
                problems.append(Problem(_readable(error), origin(line)))
                _skip_to_margin(parser)
                continue
            if statement is None:
                break
            if converted := _converted(statement, origin):
                statements.append(converted)
    except IndentationError as error:
        problems.append(Problem(f"syntax error: {error.msg}", origin(error.lineno or 1)))
    except tokenize.TokenError as error:
        message, (line, _) = error.args
        problems.append(Problem(f"syntax error: {message}; a bracket or a quote isn't closed", origin(line)))
    return statements, problems


def _converted(statement: Any, origin: Callable[[int], Origin]) -> Statement | None:
    place = origin(statement.location.line_num)
    match statement:
        case config_parser.BindingStatement(scope=scope, selector=selector, arg_name="", value=value):
            return Definition(scoped(scope, selector), value, place)
        case config_parser.BindingStatement(scope=scope, selector=selector, arg_name=field, value=value):
            return Binding(scope, selector, field, value, place)
        case config_parser.IncludeStatement(filename=file):
            return Include(file, place)
        case config_parser.ImportStatement(module=module):
            return Import(module, place)
    return None  # the head of a block, whose bindings follow as statements of their own


def _skip_to_margin(parser: config_parser.ConfigParser) -> None:
    """Moves on to the next line that could start a statement."""
    while parser.current_token.type != tokenize.ENDMARKER:
        parser.advance_one_line()
        token = parser.current_token
        if token.type == tokenize.NAME and token.start[1] == 0:
            return


def _readable(error: SyntaxError | TypeError) -> str:
    """Gin's message without Python's internals."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    if unread := re.search(r"Failed to parse token '(.*)'", message, re.DOTALL):
        word = unread[1]
        if word in ("true", "false", "none"):
            return f"syntax error: can't read {word}; did you mean {word.capitalize()}?"
        return f"syntax error: can't read {word}" + (f"; text stands in quotes: '{word}'" if word.isidentifier() else "")
    if message == "Expected ')'.":
        message = "a reference takes no arguments; bind them, each on a line of its own: Name.field = value"
    return f"syntax error: {message.strip()}"

"""A chat template at work: conversations to text.

Invariant: a conversation has the text that Hugging Face's `apply_chat_template` gives it, but for the clock: a template that asks
for today's date is told the declared one, so that a prompt is the same in every turn, on every day and after a run was resumed.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import jinja2
from jinja2.ext import Extension
from jinja2.nodes import Node, Scope
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_CLOCK = "strftime_now"
_MISTAKES = (TypeError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What Python says of a template's own expressions, such as a text plus a number; Jinja passes it on as it is."""


class GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}`, by which templates mark what the assistant says: renders its body."""

    tags: ClassVar[set[str]] = {"generation"}  # type: ignore[misc]

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        return Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox. What it says of an attribute depends on the type of its owner alone, so it's asked once for each: templates
    look at every message every turn."""

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, "jinja2.ext.loopcontrols"])
        self._safe: dict[tuple[type, str], bool] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        key = type(obj), attr
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]


class ChatTemplate:
    """A Jinja chat template. It may look into contents, drop and rewrite them."""

    def __init__(self, source: str, variables: Mapping[str, object], date: datetime.date | None = None) -> None:
        """`variables` are those that the template sees beside the conversation, `date` is what it takes for today: without one it
        has no `strftime_now`, for which some templates have a date of their own. Raises `jinja2.TemplateError`."""
        self.source = source
        environment = TemplateEnvironment()
        environment.globals |= {"tools": None, "documents": None, "raise_exception": _raise, **variables}
        if date is not None:
            environment.globals[_CLOCK] = date.strftime
        environment.filters["tojson"] = _to_json
        self._template = environment.from_string(source)

    def render(self, messages: Sequence[Mapping[str, Any]], *, generation_prompt: bool) -> str:
        """Raises `jinja2.TemplateError` for a conversation that the template refuses."""
        try:
            return self._template.render(messages=messages, add_generation_prompt=generation_prompt)
        except jinja2.UndefinedError as error:
            if _CLOCK not in str(error):
                raise
            raise jinja2.TemplateError(
                "it writes today's date, which changes from day to day; set HuggingFaceTokenizer.date to the date that it writes, "
                "as in '2025-01-31'"
            ) from error
        except _MISTAKES as error:
            raise jinja2.TemplateError(f"{type(error).__name__}: {error}") from error


def _raise(message: str) -> NoReturn:
    """What templates call for conversations that they don't know."""
    raise jinja2.TemplateError(message)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As templates expect it: letters stay what they are, and nothing is escaped for a web page."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

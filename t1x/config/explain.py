"""Turns what pydantic refuses into problems that name field, value, reason and place."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from t1x.config.annotation import components_in
from t1x.config.attempt import Attempt
from t1x.config.component import Component
from t1x.config.docs import described
from t1x.config.names import members, with_article
from t1x.config.problem import Problem
from t1x.config.statement import Binding, Macro, values_in


def explain(
    error: ValidationError, attempt: Attempt, below: dict[str, Binding], unbuilt: object, complete: bool
) -> dict[str, Problem]:
    """The problems of one component by field (`""` for the whole). A field whose value is `unbuilt` has been reported already and
    is left out, and so are missing fields where not all statements could be read (not `complete`) or a misspelt one means them.
    `below` is what `Attempt.named` takes."""
    by_field: dict[str, list[ErrorDetails]] = {}
    meant = attempt.meant()
    for detail in error.errors(include_url=False):
        name = str(detail["loc"][0]) if detail["loc"] else ""
        if not _is_missing(detail) or (complete and name not in meant):
            by_field.setdefault(name, []).append(detail)
    reported = {name for name, value in attempt.values.items() if value is unbuilt}
    return {name: _problem(name, details, attempt, below) for name, details in by_field.items() if name not in reported}


def reasons(error: ValidationError) -> str:
    """What is refused, in one line."""
    return "; ".join(map(_reason, error.errors(include_url=False)))


def conversions(built: Component, attempt: Attempt) -> dict[str, Problem]:
    """Problems, by field, of values that pydantic accepted by turning them into something else: text or a truth value into a
    number, a number into a truth value, a dict into a component."""
    problems = {}
    for name, binding in attempt.bindings.items():
        bound, value = attempt.values[name], getattr(built, name)
        given = {id(part) for part in values_in(bound, lambda part: isinstance(part, Component))}
        if any(id(part) not in given for part in values_in(value, lambda part: isinstance(part, Component))):
            problems[name] = _wrong_kind(name, bound, attempt)
        elif any(_changed(*pair) for pair in _paired(bound, value)):
            message = f"{_assignment(name, attempt)}: would become {value!r}; write what you mean without the conversion"
            problems[name] = Problem(message, binding.origin)
    return problems


def _problem(name: str, details: list[ErrorDetails], attempt: Attempt, below: dict[str, Binding]) -> Problem:
    if not name:
        return _of_the_whole(details, attempt, below)
    if _is_missing(details[0]):
        return _missing(name, attempt)
    value = attempt.values.get(name)
    if isinstance(value, Component) and any(isinstance(step, int) for detail in details for step in detail["loc"][1:]):
        message = f"{attempt.field(name)} takes a list, not {_shown(value)} alone; write [{_shown(value)}]"
        return Problem(message, attempt.place(name))
    if components_in(attempt.component.model_fields[name].annotation):
        for detail in details:
            if detail["type"] == "model_type":
                return _wrong_kind(name, detail["input"], attempt)
            if any(isinstance(step, str) for step in detail["loc"][1:]):  # pydantic looked for a component's fields in a dict
                return _wrong_kind(name, value, attempt)
    reasons = dict.fromkeys(_reason(detail) for detail in details)
    return Problem(f"{_assignment(name, attempt)}: {', or '.join(reasons)}", attempt.place(name))


def _is_missing(detail: ErrorDetails) -> bool:
    return detail["type"] == "missing" and len(detail["loc"]) == 1


def _missing(name: str, attempt: Attempt) -> Problem:
    field = attempt.component.model_fields[name]
    message = f"{attempt.name}.{name} is missing and has no default"
    if kinds := components_in(field.annotation):
        message += f"; it takes {_described(kinds)}"
    if about := described(attempt.component, name):
        message += f". {about}"
    return Problem(message, attempt.place(name))


def _wrong_kind(name: str, got: object, attempt: Attempt) -> Problem:
    kinds = components_in(attempt.component.model_fields[name].annotation)
    about = f", {with_article(got.kind().__name__)}" if isinstance(got, Component) else ""
    if isinstance(got, str) and issubclass(Component.registry.get(got, Component), tuple(kinds)):
        about = f"; write @{got}()"
    return Problem(f"{attempt.field(name)} takes {_described(kinds)}, not {_shown(got)}{about}", attempt.place(name))


def _described(kinds: list[type[Component]]) -> str:
    """`a Reward (@A(), @B())`, with at most four of the components that would do."""
    options = [f"@{name}()" for kind in kinds for name in members(kind)]
    more = ", …" if len(options) > 4 else ""
    names = " or ".join(kind.__name__ for kind in kinds)
    return with_article(names) + (f" ({', '.join(options[:4])}{more})" if options else "")


def _of_the_whole(details: list[ErrorDetails], attempt: Attempt, below: dict[str, Binding]) -> Problem:
    """What a validator of the whole component said, with the places of the bound fields that it names (all where it names none),
    its parts' included. It stands where the last of them was set: what came before was right without that."""
    reasons = "; ".join(_reason(detail) for detail in details)
    named = attempt.named(reasons, below)
    listed = named or {name: binding.origin for name, binding in attempt.bindings.items()}
    places = ", ".join(f"{path} at {origin}" for path, origin in listed.items())
    place = list(named.values())[-1] if named else attempt.place("")
    return Problem(f"{attempt.name}: {reasons}" + (f" ({places})" if places else ""), place)


def _reason(detail: ErrorDetails) -> str:
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = re.sub(r"^(Input|String|List|Tuple|Dictionary) should", "should", message)
    message = "is missing" if message == "Field required" else message
    where = "".join(f"[{step}]" for step in detail["loc"][1:] if isinstance(step, int))
    return f"{where} {message}".strip()


def _assignment(name: str, attempt: Attempt) -> str:
    """`Component.field = value`, with the macro's place where the value is one."""
    binding = attempt.bindings.get(name)
    macro = f" (from {binding.value})" if binding and isinstance(binding.value, Macro) else ""
    return f"{attempt.field(name)} = {_shown(attempt.values.get(name))}{macro}"


def _shown(value: Any) -> str:
    if isinstance(value, Component):
        return f"@{type(value).__name__}()"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _paired(bound: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """The simple values of a binding with what became of them."""
    if isinstance(bound, list | tuple) and isinstance(value, list | tuple) and len(bound) == len(value):
        for pair in zip(bound, value, strict=True):
            yield from _paired(*pair)
    elif isinstance(bound, dict) and isinstance(value, dict) and len(bound) == len(value):
        for pair in zip(bound.values(), value.values(), strict=True):
            yield from _paired(*pair)
    else:
        yield bound, value


def _changed(bound: Any, value: Any) -> bool:
    """Whether pydantic read a number or a truth value out of something that is neither."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(bound, bool):
        return number
    if isinstance(bound, str):
        return isinstance(value, bool) or (number and _is_number(bound))
    return isinstance(value, bool)


def _is_number(text: str) -> bool:
    """Whether a text is a number as it stands (`'10 GiB'`, which a field may read, isn't)."""
    try:
        float(text)
    except ValueError:
        return False
    return True

"""What `t1x show` prints: a tree that a person reads at a glance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from t1x.cli.heading import heading
from t1x.cli.value import written
from t1x.config import Component, Origin, Origins, Resolved, Role
from t1x.config.digest import effective

INDENT = "  "
LONG = 72
"""Characters from which on a container is shown item by item."""
COLUMN = 60
"""The widest that the first column gets; a longer value pushes aside what follows in its own line only."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    role: str
    """Named where it isn't that of the line above it in the tree."""
    origin: Origin | None


def tree(resolved: Resolved, origins: bool) -> str:
    """The text, with ANSI codes that dim what is a default. `origins` adds where each value was set."""
    root = resolved.root
    lines = [_Line(type(root).__name__, "", None), *_fields(root, type(root).__name__, 1, Role.ALGORITHM, resolved.origins)]
    width = max(len(line.text) for line in lines if len(line.text) <= COLUMN)
    roles = max(len(line.role) for line in lines)
    head = [f"{name:<5}  {text}" for name, text in heading(resolved)]
    return "\n".join([*head, "", lines[0].text, *(_printed(line, width, roles, origins) for line in lines[1:])])


def _printed(line: _Line, width: int, roles: int, origins: bool) -> str:
    origin = f"  {line.origin or 'default'}" if origins else ""
    text = f"{line.text:<{width}}  {line.role:<{roles}}{origin}".rstrip()
    return typer.style(text, dim=True) if line.origin is None else text


def _fields(component: Component, path: str, depth: int, above: Role, origins: Origins) -> Iterator[_Line]:
    for name in type(component).model_fields:
        place = f"{path}.{name}"
        role = effective(above, component.role(name))
        mark = "" if role is above else role.value
        yield from _value(name, getattr(component, name), place, depth, role, mark, origins.get(place), origins)


def _value(
    name: str,
    value: Any,
    path: str,
    depth: int,
    role: Role,
    mark: str,
    origin: Origin | None,
    origins: Origins,
) -> Iterator[_Line]:
    margin = INDENT * depth
    if isinstance(value, Component):
        yield _Line(f"{margin}{name} = {type(value).__name__}", mark, origin)
        yield from _fields(value, path, depth + 1, role, origins)
    elif (items := _items(value)) and (any(isinstance(item, Component) for _, item in items) or len(written(value)) > LONG):
        yield _Line(f"{margin}{name}", mark, origin)
        for key, item in items:
            yield from _value(f"[{key!r}]", item, f"{path}[{key!r}]", depth + 1, role, "", origin, origins)
    else:
        yield _Line(f"{margin}{name} = {written(value)}", mark, origin)


def _items(value: Any) -> list[tuple[Any, Any]]:
    """Of a list, tuple or dict: index or key and item."""
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list | tuple) else []

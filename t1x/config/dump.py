"""A tree of components as Gin text.

Invariant: the text loads back to an equal tree. Every field is written, defaults too, so that it still does where a default has
changed since. Components of one class that differ are told apart by a scope named after where they stand.
"""

from enum import Enum
from pathlib import PurePath
from textwrap import indent
from typing import Any

from t1x.config.component import Component
from t1x.config.problem import Origins
from t1x.config.root import Root
from t1x.config.statement import scoped
from t1x.config.walk import walk

WIDTH = 100
"""Characters from which on a container is written with one item a line."""


def dump(root: Root, origins: Origins | None = None) -> str:
    """The Gin text of a tree. With `origins` every binding is followed by a comment that says where its value was set. Raises
    `ValueError` for a value that Gin can't write."""
    scopes = _Scopes(root)
    paragraphs = [[f"import {module}" for module in _modules(scopes)]]
    for path, scope, component in scopes.entries:
        lines = []
        for name in type(component).model_fields:
            place = f"{path}.{name}"
            text = f"{scoped(scope, type(component).__name__)}.{name} = {_written(getattr(component, name), place, scopes)}"
            lines.append(text if origins is None else f"{text}  # {origins.get(place) or 'default'}")
        paragraphs.append(lines)
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


class _Scopes:
    """Every different component of a tree, in depth-first order, with the scope that tells it from others of its class."""

    def __init__(self, root: Root) -> None:
        self.entries: list[tuple[str, str, Component]] = []
        """(path, scope, component); the root first, in the empty scope."""
        found: list[tuple[str, Component]] = []
        for path, component in walk(root, type(root).__name__):
            if not any(component == other for _, other in found):
                found.append((path, component))
        classes = [type(component) for _, component in found]
        taken = {""}
        for path, component in found:
            alone = component is root or classes.count(type(component)) == 1
            scope = "" if alone else _unused(scope_name(path), taken)
            taken.add(scope)
            self.entries.append((path, scope, component))

    def of(self, component: Component) -> str:
        return next(scope for _, scope, other in self.entries if other == component)


def scope_name(path: str) -> str:
    """The path below the root as an identifier."""
    _, _, below = path.partition(".")
    return "_".join("".join(letter if letter.isalnum() and letter.isascii() else " " for letter in below).split())


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free = f"{name}_{number}"
        number += 1
    return free


def _modules(scopes: _Scopes) -> list[str]:
    """Modules that declare components of the tree and aren't t1x's own."""
    modules = {type(component).__module__ for _, _, component in scopes.entries}
    return sorted(module for module in modules if module.partition(".")[0] != "t1x")


def _written(value: Any, path: str, scopes: _Scopes) -> str:
    """A value in Gin's syntax."""
    match value:
        case Component():
            return f"@{scoped(scopes.of(value), type(value).__name__)}()"
        case Enum():
            return _written(value.value, path, scopes)
        case PurePath():
            return repr(str(value))
        case float() if value != value:
            raise ValueError(f"{path} is nan, which Gin has no way to write")
        case float() if value in (float("inf"), float("-inf")):
            return "1e999" if value > 0 else "-1e999"
        case None | bool() | bytes():
            return repr(value)
        case int() | float() | str():
            return repr(next(base for base in (int, float, str) if isinstance(value, base))(value))
        case dict():
            pairs = [f"{_written(key, path, scopes)}: {_written(item, path, scopes)}" for key, item in value.items()]
            return _container("{", pairs, "}")
        case list() | set() | frozenset():
            items = [_written(item, path, scopes) for item in value]
            return _container("[", items if isinstance(value, list) else sorted(items), "]")
        case tuple():
            items = [_written(item, path, scopes) for item in value]
            return _container("(", items, ",)" if len(items) == 1 else ")")
    raise ValueError(f"{path} is a {type(value).__name__}, which Gin has no way to write")


def _container(opening: str, items: list[str], closing: str) -> str:
    line = f"{opening}{', '.join(items)}{closing}"
    if len(line) <= WIDTH:
        return line
    inside = indent(",\n".join(items) + ",", "    ")
    return f"{opening}\n{inside}\n{closing.lstrip(',')}"

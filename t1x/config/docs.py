"""What the fields of a component say about themselves: the docstring under each.

They are read from the source when somebody asks, since reading them all takes as long as everything else that importing the
components does.
"""

import ast
import functools
import inspect
import sys

from pydantic import BaseModel


@functools.cache
def described(model: type[BaseModel], field: str) -> str:
    """What a field is, on one line; from the nearest ancestor that says it, empty where none does."""
    for base in model.__mro__:
        if text := _documented(base.__module__).get(base.__qualname__, {}).get(field):
            return " ".join(text.split())
    return ""


@functools.cache
def _documented(module: str) -> dict[str, dict[str, str]]:
    """By qualified name of each class of a module: its fields' docstrings. Empty where the source can't be read."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    found: dict[str, dict[str, str]] = {}
    _collect(tree, "", found)
    return found


def _collect(node: ast.AST, prefix: str, found: dict[str, dict[str, str]]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            found[f"{prefix}{child.name}"] = dict(_fields(child))
            _collect(child, f"{prefix}{child.name}.", found)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            _collect(child, f"{prefix}{child.name}.<locals>.", found)
        else:
            _collect(child, prefix, found)


def _fields(node: ast.ClassDef) -> list[tuple[str, str]]:
    pairs = zip(node.body, node.body[1:], strict=False)
    return [
        (field.target.id, text.value.value)
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    ]

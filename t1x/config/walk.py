"""The components of a tree, in depth-first order, and a tree with others in their place."""

from collections.abc import Callable, Iterator
from typing import Any

from t1x.config.component import Component


def walk(component: Component, path: str) -> Iterator[tuple[str, Component]]:
    """Every component from this one down with its path, `Campaign.suites[0].pool`; sets in the order of their members' texts."""
    yield path, component
    for name in type(component).model_fields:
        yield from _walk_value(getattr(component, name), f"{path}.{name}")


def _walk_value(value: Any, path: str) -> Iterator[tuple[str, Component]]:
    if isinstance(value, Component):
        yield from walk(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk_value(item, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        for index, item in enumerate(items):
            yield from _walk_value(item, f"{path}[{index}]")


def rebuilt(value: Any, change: Callable[[Any], Component]) -> Any:
    """A field's value with every outermost component in it replaced by what `change` makes of it."""
    if isinstance(value, Component):
        return change(value)
    if isinstance(value, dict):
        return {key: rebuilt(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(rebuilt(item, change) for item in value)
    return value

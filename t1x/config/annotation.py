"""What a field's type annotation says about components."""

from collections.abc import Iterator
from typing import Any, get_args

from t1x.config.component import Component


def components_in(annotation: Any) -> list[type[Component]]:
    """The kinds and components that a value of this type holds, in order."""
    return list(dict.fromkeys(_walk(annotation)))


def _walk(annotation: Any) -> Iterator[type[Component]]:
    if isinstance(annotation, type) and issubclass(annotation, Component):
        yield annotation
    for argument in get_args(annotation):
        yield from _walk(argument)

"""What `t1x list` prints: kinds, the components of a kind, the fields of a component."""

import re
import shutil
from collections.abc import Iterable
from enum import Enum
from itertools import takewhile
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from t1x.cli.value import written
from t1x.config import Component
from t1x.config.docs import described
from t1x.config.names import closest, members
from t1x.config.site import default_site, find_site, sites

SITES = "sites"
"""What `t1x list` takes for a kind that isn't one."""

_SIGNS = {
    "gt": ">",
    "ge": "≥",
    "lt": "<",
    "le": "≤",
    "multiple_of": "a multiple of",
    "min_length": "length ≥",
    "max_length": "length ≤",
}


def catalog(name: str | None) -> str:
    """The text of `t1x list NAME`, whatever the case of its letters. Raises `ValueError` for a name that is neither a kind nor a
    component nor `sites`."""
    if name is None:
        kinds = [(kind, members(kind_class), first_sentence(kind_class)) for kind, kind_class in sorted(Component.kinds.items())]
        return _table([[kind, str(len(names)), about] for kind, names, about in kinds if names])
    names = [*Component.kinds, *Component.registry, SITES]
    found = name if name in names else next((each for each in names if each.lower() == name.lower()), None)
    if found is None:
        hint = closest(name, names) or "; `t1x list` shows the kinds."
        raise ValueError(f"no kind or component is called {name}{hint} One that an experiment imports needs --import MODULE")
    if found == SITES:
        return _sites()
    return _kind(Component.kinds[found]) if found in Component.kinds else _component(Component.registry[found])


def _kind(kind: type[Component]) -> str:
    rows = [[member, first_sentence(Component.registry[member])] for member in members(kind)]
    return f"{_heading(kind)}\n\n{_table(rows) or 'No component of this kind is installed.'}"


def _component(component: type[Component]) -> str:
    fields = [_field(field, info, component) for field, info in component.model_fields.items()]
    return "\n\n".join([f"{_heading(component)}\nkind {component.kind().__name__}, module {component.__module__}", *fields])


def _sites() -> str:
    """Each site with what its overlay says of it; the one that is taken without `--site` is marked."""
    default = default_site()
    rows = [[f"{name} (default)" if name == default else name, _comment(find_site(name).overlay)] for name in sites()]
    return _table(rows)


def _comment(file: Path) -> str:
    """The first sentence of the comment at a file's top."""
    lines = takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8-sig").splitlines())
    return _sentence(" ".join(line.strip("# ") for line in lines))


def _field(name: str, info: FieldInfo, component: type[Component]) -> str:
    facts = [_type(info.annotation), *_bounds(info)]
    head = f"{component.__name__}.{name}: {', '.join(facts)}; {_default(info)}; {component.role(name).value}"
    return f"{head}\n{_wrapped(described(component, name), '    ')}".rstrip()


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default_factory_takes_validated_data:
        return "default from other fields"
    return f"default {written(info.get_default(call_default_factory=True))}"


def _bounds(info: FieldInfo) -> Iterable[str]:
    for mark in info.metadata:
        marks = mark if isinstance(mark, annotated_types.GroupedMetadata) else [mark]
        for bound in marks:
            for attribute, sign in _SIGNS.items():
                limit = getattr(bound, attribute, None)
                if limit is not None:
                    yield f"{sign} {limit}"
            if pattern := getattr(bound, "pattern", None):
                yield f"matches {pattern}"


def _type(annotation: Any) -> str:
    """A type as a reader would write it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (None, NoneType):
        return "None"
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " | ".join(repr(choice) for choice in arguments)
    if origin in (Union, UnionType):
        return " | ".join(_type(argument) for argument in arguments)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(repr(member.value) for member in annotation)
    if isinstance(origin, type):
        return f"{origin.__name__}[{', '.join('...' if argument is ... else _type(argument) for argument in arguments)}]"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def first_sentence(component: type[Component]) -> str:
    return _sentence(" ".join((component.__doc__ or "").split()))


def _sentence(text: str) -> str:
    """The first one. A full stop ends it where a capital or a backtick follows, and not after `e.g.` or `i.e.`: `Eq. 20` goes
    on."""
    return re.split(r"(?<=\.)(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z`])", text)[0]


def _heading(component: type[Component]) -> str:
    return f"{component.__name__}\n{_wrapped(component.__doc__ or '', '')}".rstrip()


def _wrapped(text: str, margin: str) -> str:
    width = min(shutil.get_terminal_size().columns, 120)
    return fill(" ".join(text.split()), width, initial_indent=margin, subsequent_indent=margin)


def _table(rows: list[list[str]]) -> str:
    """Rows with their columns aligned, the last one as long as it is."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    )

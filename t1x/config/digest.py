"""Digests: which trees are the same study, and which are the same run.

A field's *effective* role is the loosest on its path: below a field of placement everything is placement.

Invariants:
- `study_digest` covers the fields of effective role `ALGORITHM`, so a site never changes it, and no seed does;
- `run_digest` covers every field whose own role isn't `PLACEMENT`, seeds too, so that two trees with the same one do the same work
  (up to rounding, where they run on other hardware).
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from t1x.config.component import Component, Role
from t1x.config.mapping import plain
from t1x.config.root import Root

DIGITS = 16
ORDER = (Role.ALGORITHM, Role.SEED, Role.SCALE, Role.PLACEMENT)
"""From the strictest to the loosest."""


def effective(above: Role, own: Role) -> Role:
    """The effective role of a field that stands below one of effective role `above`."""
    return max(above, own, key=ORDER.index)


def study_digest(root: Root) -> str:
    """`DIGITS` hexadecimal digits."""
    return digest({path: value for path, value, _, role in leaves(root) if role is Role.ALGORITHM})


def run_digest(root: Root) -> str:
    """`DIGITS` hexadecimal digits. What other campaigns add to it, whose weights this one starts from, isn't in the tree."""
    return digest({path: value for path, value, own, _ in leaves(root) if own is not Role.PLACEMENT})


def digest(content: Any) -> str:
    """Of anything that JSON can hold."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def leaves(root: Root) -> Iterator[tuple[str, Any, Role, Role]]:
    """(path, plain value, own role, effective role) of every field of a tree; of a field that holds a component, the class name."""
    name = type(root).__name__
    yield name, name, Role.ALGORITHM, Role.ALGORITHM
    yield from _fields(root, name, Role.ALGORITHM)


def _fields(component: Component, path: str, above: Role) -> Iterator[tuple[str, Any, Role, Role]]:
    for name in type(component).model_fields:
        own = component.role(name)
        yield from _value(getattr(component, name), f"{path}.{name}", own, effective(above, own))


def _value(value: Any, path: str, own: Role, role: Role) -> Iterator[tuple[str, Any, Role, Role]]:
    if isinstance(value, Component):
        yield path, type(value).__name__, own, role
        yield from _fields(value, path, role)
    elif isinstance(value, dict):
        yield path, sorted(map(str, value)), own, role
        for key, item in value.items():
            yield from _value(item, f"{path}[{key!r}]", own, role)
    elif isinstance(value, list | tuple):
        yield path, len(value), own, role
        for index, item in enumerate(value):
            yield from _value(item, f"{path}[{index}]", own, role)
    else:
        yield path, plain(value), own, role

"""What differs between two trees of components.

Invariants:
- two equal trees have no difference, and every difference is of two values that aren't equal (or of one that only one tree has);
- the differences of B and A are those of A and B with their sides swapped;
- a component in the place of one of another class, or of none, is one difference, with the fields that differ inside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from t1x.config.component import Component, Role
from t1x.config.digest import ORDER, effective
from t1x.config.problem import Origin, Origins
from t1x.config.root import Root


@dataclass(frozen=True, slots=True)
class Side:
    """A value in one of the trees."""

    value: Any
    origin: Origin | None
    """Where it was set; None for a default."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two trees differ."""

    path: str
    """Below the roots: `reward.scale`, `suites[0].pool`; empty for the roots themselves, where their classes differ."""
    role: Role
    """The effective one; the stricter where the trees have it as fields of two classes."""
    left: Side | None
    """None where only the other tree has this field or item."""
    right: Side | None
    inside: tuple["Difference", ...] = ()
    """Of a component that replaces another: the fields that differ. Of one that only one tree has: its fields."""


def diff(left: tuple[Root, Origins], right: tuple[Root, Origins]) -> list[Difference]:
    """Every difference of two trees, in the order of their fields."""
    a, b = (_Place(root, "", Role.ALGORITHM, None, _Tree(type(root).__name__, origins)) for root, origins in (left, right))
    return list(_values(a, b))


@dataclass(frozen=True, slots=True)
class _Tree:
    name: str
    """What the paths in `origins` begin with."""
    origins: Origins


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in a tree."""

    value: Any
    path: str
    role: Role
    origin: Origin | None
    tree: _Tree

    def fields(self) -> dict[str, "_Place"]:
        """The fields of a component."""
        return {name: self._field(type(self.value), name) for name in type(self.value).model_fields}

    def _field(self, component: type[Component], name: str) -> "_Place":
        path = f"{self.path}.{name}" if self.path else name
        role = effective(self.role, component.role(name))
        return _Place(getattr(self.value, name), path, role, self.tree.origins.get(f"{self.tree.name}.{path}"), self.tree)

    def items(self) -> dict[Any, "_Place"]:
        """The items of a list, tuple or dict by index or key; they were set where it was."""
        pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
        return {key: _Place(item, f"{self.path}[{key!r}]", self.role, self.origin, self.tree) for key, item in pairs}


def _values(a: _Place, b: _Place) -> Iterator[Difference]:
    if isinstance(a.value, Component) and isinstance(b.value, Component):
        inside = _pairs(a.fields(), b.fields())
        if type(a.value) is type(b.value):
            yield from inside
        else:
            yield _difference(a, b, tuple(inside))
    elif type(a.value) is type(b.value) and (_holds_components(a.value) or _holds_components(b.value)):
        yield from _pairs(a.items(), b.items())
    elif a.value != b.value:
        yield _difference(a, b)


def _pairs(left: Mapping[Any, _Place], right: Mapping[Any, _Place]) -> Iterator[Difference]:
    """Differences of two components' fields or two containers' items."""
    for key in dict.fromkeys([*left, *right]):
        a, b = left.get(key), right.get(key)
        if a is None or b is None:
            yield _difference(a, b)
        else:
            yield from _values(a, b)


def _difference(a: _Place | None, b: _Place | None, inside: tuple[Difference, ...] = ()) -> Difference:
    places = [place for place in (a, b) if place is not None]
    components = [place for place in places if isinstance(place.value, Component)]
    if len(components) == 1:
        fields = components[0].fields()
        inside = tuple(_pairs(fields, {}) if components[0] is a else _pairs({}, fields))
    role = min((place.role for place in places), key=ORDER.index)
    left, right = (Side(place.value, place.origin) if place else None for place in (a, b))
    return Difference(places[0].path, role, left, right, inside)


def _holds_components(value: Any) -> bool:
    items: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(isinstance(item, Component) for item in items)

"""Builds the typed tree that bindings describe.

Invariants:
- a component that can't be built costs one problem, not one more for each component that holds it;
- every field of the tree has an entry in `origins`: where its value was set, or None for a default;
- a component that is a field's default takes bindings like one that was bound.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import PydanticUserError, ValidationError

from t1x.config.annotation import components_in
from t1x.config.attempt import Attempt
from t1x.config.component import Component
from t1x.config.explain import conversions, explain
from t1x.config.problem import Origin, Problem
from t1x.config.statement import Binding, Macro, Reference, scoped
from t1x.config.table import Table


class Unbuilt:
    """Stands for a value that couldn't be built; its problem is known already."""


UNBUILT = Unbuilt()


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where in the tree a value goes."""

    path: str
    scope: str
    origin: Origin | None

    def item(self, key: object) -> "_Spot":
        return _Spot(f"{self.path}[{key!r}]", self.scope, self.origin)


class Builder:
    """Builds one tree from a table and collects what goes wrong."""

    def __init__(self, table: Table, complete: bool = True) -> None:
        """`complete` is false where some statements couldn't be read, so that what is missing may not be missing."""
        self.origins: dict[str, Origin | None] = {}
        self.scopes: dict[str, dict[str, str]] = {}
        """By component name: each path in the tree where one is built, with its scope."""
        self.problems: list[Problem] = []
        self.gaps = False
        """Whether the problems have left out a part of the tree, so that what isn't reached may be meant for it."""
        self._table = table
        self._complete = complete
        self._building: list[tuple[str, str]] = []
        """(component, scope) of the references that are being built, outermost first."""
        self._expanding: list[str] = []
        self._bound: dict[str, Binding] = {}
        """By path: the binding of each bound field."""

    def root(self, component: type[Component]) -> Any:
        """The tree under a root component, or `UNBUILT`."""
        return self._referred(component, _Spot(component.__name__, "", None))

    def _referred(self, component: type[Component], spot: _Spot) -> Any:
        step = (component.__name__, spot.scope)
        if step in self._building:
            name = scoped(spot.scope, component.__name__)
            message = f"{spot.path}: {name} would hold itself; give one of them a scope: @inner/{component.__name__}()"
            self.problems.append(Problem(message, spot.origin))
            return UNBUILT
        self._building.append(step)
        built = self._component(component, spot)
        self._building.pop()
        return built

    def _component(self, component: type[Component], spot: _Spot, given: Component | None = None) -> Any:
        """Builds a component from its bindings; what isn't bound comes from `given` (an instance that is some field's default), or
        else from the component's own defaults."""
        self.scopes.setdefault(component.__name__, {})[spot.path] = spot.scope
        attempt = Attempt(component, spot.scope, spot.origin, self._table.take(component, spot.scope))
        bindings = attempt.bindings
        for name, field in component.model_fields.items():
            binding = bindings.get(name)
            place = _Spot(f"{spot.path}.{name}", spot.scope, binding.origin if binding else None)
            self.origins[place.path] = place.origin
            if binding:
                self._bound[place.path] = binding
                attempt.values[name] = self._value(binding.value, place)
            elif given is not None:
                attempt.values[name] = self._value(getattr(given, name), place)
            elif not field.is_required() and not field.default_factory_takes_validated_data:
                default = field.get_default(call_default_factory=True)
                value = self._value(default, place)
                if value is not default:
                    attempt.values[name] = value
        if given is not None and all(value is getattr(given, name) for name, value in attempt.values.items()):
            return given
        try:
            built = component.model_validate(attempt.values)
        except ValidationError as error:
            problems = explain(error, attempt, self._below(spot.path), UNBUILT, self._complete)
            self._report(component, problems)
            return UNBUILT
        except PydanticUserError as error:  # of a class that says what can't be: fields are looked at when they are first needed
            self.problems.append(Problem(f"{component.__module__}.{component.__name__}: {error.message}", spot.origin))
            return UNBUILT
        problems = conversions(built, attempt)
        self._report(component, problems)
        return UNBUILT if problems else built

    def _report(self, component: type[Component], problems: dict[str, Problem]) -> None:
        """Takes the problems of a component by field."""
        self.problems += problems.values()
        self.gaps |= any(name and components_in(component.model_fields[name].annotation) for name in problems)

    def _below(self, path: str) -> dict[str, Binding]:
        """The bound fields of a component and its parts, by path from there, in the order in which they were bound."""
        found = [(each.removeprefix(f"{path}."), binding) for each, binding in self._bound.items() if each.startswith(f"{path}.")]
        return dict(sorted(found, key=lambda pair: self._table.bindings.index(pair[1])))

    def _value(self, value: Any, spot: _Spot) -> Any:
        """A bound value with everything in it built; the same object where there is nothing to build."""
        match value:
            case Reference():
                component = Component.registry.get(value.name)
                if component is None or not value.called:
                    return UNBUILT
                return self._referred(component, _Spot(spot.path, value.scope or spot.scope, spot.origin))
            case Macro():
                return self._macro(value, spot)
            case Component():
                return self._component(type(value), spot, given=value)
            case list() | tuple():
                items = [self._value(item, spot.item(index)) for index, item in enumerate(value)]
                if all(new is old for new, old in zip(items, value, strict=True)):
                    return value
                return UNBUILT if UNBUILT in items else type(value)(items)
            case dict():
                pairs = {self._value(key, spot): self._value(item, spot.item(key)) for key, item in value.items()}
                if all(key in value and value[key] is item for key, item in pairs.items()):
                    return value
                return UNBUILT if UNBUILT in pairs or UNBUILT in pairs.values() else pairs
        return value

    def _macro(self, macro: Macro, spot: _Spot) -> Any:
        definition = self._table.macros.get(macro.name)
        if definition is None or macro.name in self._expanding:
            return UNBUILT
        self._expanding.append(macro.name)
        value = self._value(definition.value, spot)
        self._expanding.pop()
        return value

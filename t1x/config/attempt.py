"""A component that is being built, and where each thing that a problem of it names was set."""

import re
from dataclasses import dataclass, field
from typing import Any

from t1x.config.component import Component
from t1x.config.names import nearest
from t1x.config.problem import Origin
from t1x.config.statement import Binding, scoped


@dataclass(frozen=True, slots=True)
class Attempt:
    """A component that is being built."""

    component: type[Component]
    scope: str
    origin: Origin | None
    """Where it was referred to; None for a root and for a default."""
    taken: dict[str, Binding]
    """The binding that each bound field takes, and those of fields that there aren't."""
    values: dict[str, Any] = field(default_factory=dict)
    """The value of each field that isn't left to its default."""

    @property
    def name(self) -> str:
        return scoped(self.scope, self.component.__name__)

    @property
    def bindings(self) -> dict[str, Binding]:
        """The binding that each bound field takes."""
        return {name: binding for name, binding in self.taken.items() if name in self.component.model_fields}

    def meant(self) -> set[str]:
        """Fields that a binding of one that there isn't seems to mean; a user is told so there."""
        fields = self.component.model_fields
        return {near for name in self.taken if name not in fields and (near := nearest(name, fields))}

    def field(self, name: str) -> str:
        """What a field is called where it was set, or else where the component stands."""
        return self.bindings[name].name if name in self.bindings else f"{self.name}.{name}"

    def place(self, name: str) -> Origin | None:
        """Where a field was set, or else where the component was."""
        if name in self.bindings:
            return self.bindings[name].origin
        return self.origin or next((binding.origin for binding in self.bindings.values()), None)

    def named(self, text: str, below: dict[str, Binding]) -> dict[str, Origin]:
        """Where each field that a text names was set, in the order of `below`, which has the bound fields of this component and of
        its parts by their paths (`harness`, `harness.context_tokens`). A part's field is meant where the text names the part too,
        or where its name can be no other word; the part itself is then left out."""
        words = set(re.findall(r"\w+", text))
        own = {path for path in below if path in words and path in self.bindings}
        inner = {path for path, binding in below.items() if self._names_inner(path, binding, words)}
        own -= {top(path) for path in inner}
        return {path: binding.origin for path, binding in below.items() if path in own | inner}

    def _names_inner(self, path: str, binding: Binding, words: set[str]) -> bool:
        if path == top(path) or binding.field not in words or binding.field in self.component.model_fields:
            return False
        return top(path) in words or binding.component in words or "_" in binding.field


def top(path: str) -> str:
    """The first field of a path: `suites` of `suites[0].pool`."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]

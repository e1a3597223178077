"""Which binding a field takes.

Invariant: a binding applies to its component and to every component derived from it, in its own scope and in every scope below it;
among those that apply, the one with the longest scope wins, and among equals the last.
"""

from collections import defaultdict
from collections.abc import Iterable

from t1x.config.component import Component
from t1x.config.statement import Binding, Definition, Reference, values_in


class Table:
    """The bindings and macros of a configuration, and which of the bindings were reached so far."""

    def __init__(self, statements: Iterable[Binding | Definition]) -> None:
        self.bindings: list[Binding] = []
        self.macros: dict[str, Definition] = {}
        self.reached: set[Binding] = set()
        """Bindings whose component was built in a scope where they apply, overridden or not."""
        self._by_component: dict[str, list[tuple[int, Binding]]] = defaultdict(list)
        for number, statement in enumerate(statements):
            if isinstance(statement, Definition):
                self.macros[statement.name] = statement
            else:
                self.bindings.append(statement)
                self._by_component[statement.component].append((number, statement))

    def take(self, component: type[Component], scope: str) -> dict[str, Binding]:
        """The winning binding of every bound field of a component that is built in a scope, in the order in which they were made;
        marks what applies as reached."""
        winners: dict[str, Binding] = {}
        for _, binding in sorted(self._of(component), key=lambda numbered: numbered[0]):
            if applies(binding.scope, scope):
                self.reached.add(binding)
                winner = winners.get(binding.field)
                if winner is None or len(binding.scope) >= len(winner.scope):
                    winners.pop(binding.field, None)
                    winners[binding.field] = binding
        return winners

    def _of(self, component: type[Component]) -> list[tuple[int, Binding]]:
        names = [base.__name__ for base in component.__mro__ if Component.registry.get(base.__name__) is base]
        return [numbered for name in names for numbered in self._by_component.get(name, ())]

    def references(self) -> set[Reference]:
        """Everything that some binding or macro refers to."""
        values = [binding.value for binding in self.bindings] + [macro.value for macro in self.macros.values()]
        return set(values_in(values, lambda value: isinstance(value, Reference)))


def applies(outer: str, scope: str) -> bool:
    """Whether a binding in the scope `outer` applies in `scope`."""
    return not outer or scope == outer or scope.startswith(f"{outer}/")

"""Which root a file describes."""

from t1x.config.component import Component
from t1x.config.names import members
from t1x.config.problem import ConfigError, Origin, Problem
from t1x.config.root import Root
from t1x.config.statement import Reference
from t1x.config.table import Table


def top(table: Table, file: str) -> type[Component]:
    """The one root class that has bindings without a scope and that nothing refers to (a class whose fields several roots share is
    none itself). A root may hold others, even of its class: where something refers to each, it is the one referred to with a scope
    only. Raises `ConfigError` unless there is one."""
    places = {binding.component: binding.origin for binding in reversed(table.bindings) if not binding.scope}
    roots = [name for name in places if name in _roots()]
    references = table.references()
    unreferred = [name for name in roots if not any(reference.name == name for reference in references)]
    only_scoped = [name for name in roots if Reference("", name) not in references]
    tops = unreferred or only_scoped or roots
    if len(tops) == 1:
        return Component.registry[tops[0]]
    if tops:
        listed = ", ".join(f"{name} at {places[name]}" for name in sorted(tops))
        message = f"a file describes one root, and this one describes {len(tops)}: {listed}"
    else:
        message = f"nothing to build: no field of {' or '.join(_roots())} is bound"
    raise ConfigError([Problem(message, Origin(file))])


def _roots() -> list[str]:
    """Names of the roots that a file can describe."""
    return [name for name in members(Root) if not vars(Component.registry[name]).get("shared", False)]

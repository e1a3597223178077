"""A Gin file resolved into one typed tree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.config.build import Builder
from t1x.config.check import check
from t1x.config.component import Component
from t1x.config.discover import discover
from t1x.config.names import closest, members
from t1x.config.places import find, shown, siblings
from t1x.config.problem import ConfigError, Origin, Problem
from t1x.config.reader import Source, read
from t1x.config.root import Root
from t1x.config.statement import Binding, scoped
from t1x.config.table import Table


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a Gin file means."""

    root: Root
    """The tree, validated."""
    origins: Mapping[str, Origin | None]
    """Where each field was set, by its path (`Campaign.reward.scale`, `Campaign.suites[0].name`); None for a default."""
    notes: tuple[str, ...]
    """What a user may want to know and isn't wrong, e.g. a binding whose component a later statement replaced."""
    path: Path
    """The file."""


def load(path: str | Path, *, set: Sequence[str] = ()) -> Resolved:
    """Resolves a Gin file and then each Gin text of `set`, which win over the file. `path` is looked up in the working directory
    and in the package. Raises `FileNotFoundError` where there is no file, `ConfigError` with everything that is wrong in it."""
    file = find(str(path))
    if file is None:
        raise FileNotFoundError(f"there is no file {path}{closest(str(path), siblings(str(path)))}")
    discover()
    source = read(file, set)
    table = Table(source.statements)
    problems = [*source.problems, *check(table)]
    try:
        component = _root(table, file)
    except ConfigError as error:
        raise ConfigError(problems or error.problems) from None
    builder = Builder(table, source.complete)
    root = builder.root(component)
    notes: list[str] = []
    unreached = [binding for binding in table.bindings if binding not in table.reached]
    if unreached and not problems:
        replaced = _reached_before(source, component)
        notes = _notes(binding for binding in unreached if binding in replaced)
        problems = [_reaches_nothing(binding, table, component) for binding in unreached if binding not in replaced]
    problems += builder.problems
    if problems:
        raise ConfigError(problems)
    assert isinstance(root, Root), "a tree without problems is built"
    return Resolved(root, builder.origins, tuple(notes), file)


def _root(table: Table, file: Path) -> type[Component]:
    """The root component that has bindings and that no value refers to. Raises `ConfigError` unless there is exactly one."""
    bound = dict.fromkeys(binding.component for binding in table.bindings)
    roots = [name for name in bound if name in Component.registry and issubclass(Component.registry[name], Root)]
    tops = [name for name in roots if name not in table.references()] or roots
    if len(tops) == 1:
        return Component.registry[tops[0]]
    if tops:
        first = {name: next(binding.origin for binding in table.bindings if binding.component == name) for name in tops}
        listed = ", ".join(f"{name} at {origin}" for name, origin in first.items())
        message = f"a file describes one root, and this one describes {len(tops)}: {listed}"
        raise ConfigError([Problem(message, Origin(shown(file)))])
    options = " or ".join(members(Root))
    raise ConfigError([Problem(f"nothing to build: no field of {options} is bound", Origin(shown(file)))])


def _reached_before(source: Source, component: type[Component]) -> set[Binding]:
    """Bindings that reached something before some later file or `--set` was read: they aren't mistakes where they stand."""
    reached = set[Binding]()
    for count in source.layers[:-1]:
        table = Table(source.statements[:count])
        Builder(table).root(component)
        reached |= table.reached
    return reached


def _notes(bindings: Iterable[Binding]) -> list[str]:
    """One note for all bindings of a file that had the same component."""
    fields: dict[tuple[str, str], list[Binding]] = {}
    for binding in bindings:
        fields.setdefault((binding.origin.file, scoped(binding.scope, binding.component)), []).append(binding)
    return [
        f"{same[0].origin}: {name} has no effect here ({', '.join(binding.field for binding in same)}): its component was replaced"
        for (_, name), same in fields.items()
    ]


def _reaches_nothing(binding: Binding, table: Table, component: type[Component]) -> Problem:
    name = binding.component
    if name == component.__name__:
        reason = f"the root stands in no scope; write {name}.{binding.field}"
    elif any(other.component == name for other in table.reached) or (binding.scope and name in table.references()):
        reason = f"no {name} is built in the scope {binding.scope}; refer to it as @{binding.scope}/{name}()"
    else:
        reason = f"no {name} is in the tree; bind a field to @{name}(), or remove this"
    return Problem(f"{binding.name} reaches nothing: {reason}", binding.origin)

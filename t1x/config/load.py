"""A Gin file resolved into one typed tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.config.build import Builder
from t1x.config.check import check
from t1x.config.component import Component
from t1x.config.discover import discover
from t1x.config.names import closest
from t1x.config.places import find, shown, siblings
from t1x.config.problem import ConfigError, Origin
from t1x.config.reader import Source, read
from t1x.config.root import Root
from t1x.config.statement import Binding
from t1x.config.table import Table
from t1x.config.top import top
from t1x.config.unreached import notes, problem


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
        component = top(table, shown(file))
    except ConfigError as error:
        raise ConfigError(problems or error.problems) from None
    builder = Builder(table, source.complete)
    root = builder.root(component)
    noted: list[str] = []
    unreached = [binding for binding in table.bindings if binding not in table.reached]
    if unreached and not problems:
        replaced = _reached_before(source, component)
        noted = notes((binding for binding in unreached if binding in replaced), builder.scopes)
        problems = [problem(binding, builder.scopes, component) for binding in unreached if binding not in replaced]
    problems += builder.problems
    if problems:
        raise ConfigError(problems)
    assert isinstance(root, Root), "a tree without problems is built"
    return Resolved(root, builder.origins, tuple(noted), file)


def _reached_before(source: Source, component: type[Component]) -> set[Binding]:
    """Bindings that reached something before some later file or `--set` was read: they aren't mistakes where they stand."""
    reached = set[Binding]()
    for count in source.layers[:-1]:
        table = Table(source.statements[:count])
        Builder(table).root(component)
        reached |= table.reached
    return reached

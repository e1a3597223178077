"""A Gin file resolved into one typed tree."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from t1x.config.build import Builder
from t1x.config.check import check
from t1x.config.component import Component
from t1x.config.discover import discover
from t1x.config.names import closest
from t1x.config.places import find, shown, siblings
from t1x.config.problem import ConfigError, Origins, Problem
from t1x.config.reader import Reader, Setting, Source
from t1x.config.root import Root
from t1x.config.site import AUTO, Site, default_site, find_site
from t1x.config.statement import Binding, Definition
from t1x.config.studied import overridden, studied
from t1x.config.table import Table
from t1x.config.top import top
from t1x.config.unreached import notes, problem


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a Gin file means."""

    root: Root
    """The tree, validated."""
    origins: Origins
    """Where each field was set."""
    notes: tuple[str, ...]
    """What a user may want to know and isn't wrong, e.g. a binding whose component a later statement replaced."""
    path: Path
    """The file."""

    def __repr__(self) -> str:
        """Short: the tree, which may have hundreds of fields, is what `t1x show` prints."""
        return f"Resolved({shown(self.path)!r}, site={self.root.site!r}, root={type(self.root).__name__})"


def load(
    path: str | Path, *, site: str | None = None, set: Sequence[str | Setting] = (), root: type[Root] | None = None
) -> Resolved:
    """Resolves a Gin file on a site and then each Gin text of `set`, which win over both. `path` is looked up in the working
    directory and in the package. `site` is a name, `"auto"` for what `default_site` says, or None for the bare file; a file that
    sets its root's `site` is resolved already and takes none. `root` is the class of its root: the one that has bindings where
    None. Raises `FileNotFoundError` where there is no file, `ValueError` for an unknown site, `ConfigError` with everything that is
    wrong."""
    file = find(str(path))
    if file is None:
        raise FileNotFoundError(f"there is no file {path}{closest(str(path), siblings(str(path)))}")
    discover()
    reader = Reader()
    bare = reader.read(file, set)
    where = _site(site, bare.statements)
    plain = _attempt(bare, file, root)
    if where is None:
        return _resolved(plain, bare, file, bare, None)
    source = reader.read(file, set, where)
    source.place(where, plain.component)
    return _resolved(_attempt(source, file, plain.component), source, file, bare, plain)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What some statements make, right or wrong."""

    table: Table
    component: type[Component] | None
    """The root's class; None where there isn't one."""
    builder: Builder
    root: object
    """The tree, or what stands for one that couldn't be built."""
    problems: list[Problem]
    """Of the statements themselves."""


def _attempt(source: Source, file: Path, component: type[Component] | None = None) -> _Attempt:
    table = Table(source.statements)
    problems = [*source.problems, *check(table, source.of_site, source.imported)]
    if component is None:
        try:
            component = top(table, shown(file))
        except ConfigError as error:
            problems = problems or list(error.problems)
    builder = Builder(table, source.complete)
    root = builder.root(component) if component is not None else None
    return _Attempt(table, component, builder, root, problems)


def _resolved(made: _Attempt, source: Source, file: Path, bare: Source, plain: _Attempt | None) -> Resolved:
    """The tree that was made of `source`; `plain` is what `bare`, the file without its site, makes."""
    if made.component is None:
        raise ConfigError(made.problems)
    problems, noted = list(made.problems), list[str]()
    unreached = [binding for binding in made.table.bindings if binding not in made.table.reached and binding not in source.of_site]
    if unreached and not problems and not made.builder.gaps:
        replaced = _reached_before(frozenset(unreached), [bare, source], made.component)
        noted = notes((each for each in unreached if each in replaced and _is_own(each, shown(file))), made.builder.scopes)
        problems = [problem(each, made.builder.scopes, made.component) for each in unreached if each not in replaced]
    problems += [*made.builder.problems, *_sites_set(source)]
    if plain is not None and not problems:
        problems += studied(made.root, made.builder.origins, plain.root, plain.builder.origins, source.of_site)
        noted += overridden(made.builder.origins, plain.builder.origins, source.of_site, shown(file))
    if problems:
        raise ConfigError(problems)
    assert isinstance(made.root, Root), "a tree without problems is built"
    return Resolved(made.root, made.builder.origins, tuple(noted), file)


def _is_own(binding: Binding, file: str) -> bool:
    """Whether a binding stands in the experiment's own file or in a setting: what registry files say for other sites is no news."""
    return binding.origin.file == file or binding.origin.text is not None


def _site(wanted: str | None, statements: Sequence[Binding | Definition]) -> Site | None:
    """The site to resolve a file for: none where it, or a file that it includes, is resolved for one already."""
    resolved = next((each for each in statements if _sets_site(each) and each.origin.text is None), None)
    if resolved is None:
        return None if wanted is None else find_site(default_site() if wanted == AUTO else wanted)
    if wanted not in (None, AUTO, resolved.value):
        message = f"this file is resolved for the site {resolved.value!r}; load what it was made from to have it on {wanted!r}"
        raise ConfigError([Problem(message, resolved.origin)])
    return None


def _sets_site(statement: Binding | Definition) -> TypeGuard[Binding]:
    if not isinstance(statement, Binding) or statement.field != "site":
        return False
    return issubclass(Component.registry.get(statement.component, Component), Root)


def _sites_set(source: Source) -> Iterator[Problem]:
    """A site that says it is another, or a setting that says so: nothing would be read for that one."""
    for statement in source.statements:
        if _sets_site(statement) and (statement in source.of_site or statement.origin.text is not None):
            yield Problem(f"{statement.name} isn't set but chosen: --site {statement.value}", statement.origin)


def _reached_before(unreached: Set[Binding], sources: Sequence[Source], component: type[Component]) -> Set[Binding]:
    """Those that reached something before some later file or setting was read, or without the site: they aren't mistakes where
    they stand."""
    left = frozenset(unreached)
    for source in sources:
        for count in sorted({*source.layers}, reverse=True):
            if not left:
                return unreached
            table = Table(source.statements[:count])
            Builder(table).root(component)
            left -= table.reached
    return unreached - left

"""A Gin file, everything it includes, a site's overlay and the settings of a command line, as one list of statements.

Invariants:
- statements stand in the order in which they take effect, so that the last one wins: included files, the file itself, the site's
  overlay, each setting;
- a file that is included twice is read once, where it came first, so that it can't undo what stands between;
- a file is parsed once, so that reading the same experiment with and without a site gives the same statements.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from t1x.config.component import Component
from t1x.config.discover import import_components
from t1x.config.names import closest
from t1x.config.places import find, in_project, shown, siblings
from t1x.config.problem import SETTING, Origin, Problem
from t1x.config.site import Site
from t1x.config.statement import Binding, Definition, Import, Include, Statement, parse


@dataclass(frozen=True, slots=True)
class Setting:
    """Gin text that wins over the file, with a place of its own, e.g. the line of a grid that it comes from."""

    text: str
    origin: Origin


@dataclass
class Source:
    """What was read."""

    statements: list[Binding | Definition] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    """Number of statements after each file and each setting."""
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True
    """Whether every statement could be read."""
    imported: bool = True
    """Whether every module could be imported."""
    of_site: set[Binding | Definition] = field(default_factory=set)
    """Statements that stand in a site's files."""
    overlay_from: int = 0
    """Number of statements before the site's overlay."""

    def fail(self, problem: Problem) -> None:
        """Notes a problem that keeps some statements from being read."""
        self.problems.append(problem)
        self.complete = False

    def place(self, site: Site, root: type[Component] | None) -> None:
        """Lets the root's `site` say where it is."""
        if root is not None:
            binding = Binding("", root.__name__, "site", site.name, Origin(shown(site.overlay)))
            self.statements.insert(self.overlay_from, binding)
            self.layers = [count + (count > self.overlay_from) for count in self.layers]


class Reader:
    """Reads one experiment, with a site or without one."""

    def __init__(self) -> None:
        self._parsed: dict[Path, tuple[list[Statement], list[Problem]]] = {}

    def read(self, path: Path, settings: Sequence[str | Setting] = (), site: Site | None = None) -> Source:
        """Reads a file with its includes, then the site's overlay, then each of `settings` (Gin text). Executes `import`
        statements."""
        walk = _Walk(self._parse, site, path)
        walk.file(path, inside=())
        if site is not None:
            walk.source.overlay_from = len(walk.source.statements)
            walk.file(site.overlay, inside=())
        for number, setting in enumerate(settings, start=1):
            if isinstance(setting, str):
                setting = Setting(setting, Origin(SETTING, number, setting))
            walk.setting(setting)
        return walk.source

    def _parse(self, path: Path) -> tuple[list[Statement], list[Problem]]:
        key = path.resolve()
        if key not in self._parsed:
            self._parsed[key] = _parsed(path)
        return self._parsed[key]


class _Walk:
    """One reading."""

    def __init__(self, parsed: Callable[[Path], tuple[list[Statement], list[Problem]]], site: Site | None, main: Path) -> None:
        self.source = Source()
        self._parsed, self._site, self._main = parsed, site, main
        self._done: set[Path] = set()

    def file(self, path: Path, inside: tuple[Path, ...]) -> None:
        """Reads a file; `inside` are those that include it."""
        source = self.source
        statements, problems = self._parsed(path)
        self._done.add(path.resolve())
        for problem in problems:
            source.fail(problem)
        source.problems += _repeated(statements)
        of_site = self._site is not None and path != self._main and self._site.holds(path)
        at_top = True
        for statement in statements:
            if isinstance(statement, Include):
                if not at_top:
                    message = "an include stands at the top of a file, above its bindings, so that they win over what is included"
                    source.problems.append(Problem(message, statement.origin))
                self._include(statement, path, (*inside, path.resolve()))
            else:
                at_top = at_top and isinstance(statement, Import)
                self._take(statement, of_site)
        source.layers.append(len(source.statements))

    def setting(self, setting: Setting) -> None:
        """Reads a setting."""
        statements, problems = parse(setting.text, lambda line: setting.origin)
        for problem in problems:
            self.source.fail(problem)
        if not statements and not problems:
            self.source.problems.append(Problem("sets nothing; write e.g. --set 'Campaign.seed = 1'", setting.origin))
        for statement in statements:
            if isinstance(statement, Include):
                self._include(statement, None, ())
            else:
                self._take(statement, False)
        self.source.layers.append(len(self.source.statements))

    def _include(self, include: Include, path: Path | None, inside: tuple[Path, ...]) -> None:
        found = self._found(include.file, path)
        if found is None:
            beside = "beside this file, " if path else ""
            message = f"can't find {include.file!r} {beside}in the working directory, or in the t1x package"
            message += closest(include.file, siblings(include.file))
            self.source.fail(Problem(message, include.origin))
        elif (target := found.resolve()) in inside:
            circle = " -> ".join(shown(step) for step in (*inside[inside.index(target) :], target))
            self.source.fail(Problem(f"the files include each other in a circle: {circle}", include.origin))
        elif target not in self._done:
            self.file(found, inside)

    def _found(self, name: str, path: Path | None) -> Path | None:
        """The file that an include in the file `path` means: the site's shadow of it, or itself. In a shadow, what it shadows."""
        found = find(name, beside=path.parent if path else None)
        shadows = self._site.shadows((found and in_project(found)) or name) if self._site else []
        here = path.resolve() if path else None
        resolved = [shadow.resolve() for shadow in shadows]
        if here in resolved:
            shadows = shadows[resolved.index(here) + 1 :]
        return shadows[0] if shadows else found

    def _take(self, statement: Binding | Definition | Import, of_site: bool) -> None:
        if isinstance(statement, Import):
            self._import(statement)
            return
        self.source.statements.append(statement)
        if of_site:
            self.source.of_site.add(statement)

    def _import(self, statement: Import) -> None:
        try:
            import_components(statement.module)
        except ValueError as error:
            self.source.imported = False
            self.source.fail(Problem(str(error), statement.origin))


def _parsed(path: Path) -> tuple[list[Statement], list[Problem]]:
    name = shown(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [Problem(f"isn't UTF-8 text: {error.reason} at byte {error.start}", Origin(name))]
    return parse(text, lambda line: Origin(name, line))


def _repeated(statements: list[Statement]) -> list[Problem]:
    """What one file sets twice."""
    first: dict[str, Origin] = {}
    problems = []
    for statement in statements:
        if isinstance(statement, Binding | Definition):
            earlier = first.setdefault(statement.name, statement.origin)
            if earlier is not statement.origin:
                message = f"{statement.name} is set twice in this file, first in line {earlier.line}; remove one"
                problems.append(Problem(message, statement.origin))
    return problems

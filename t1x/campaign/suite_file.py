"""Suites out of Gin files."""

import tempfile
from pathlib import Path
from typing import ClassVar

from t1x.campaign.experiment import Experiment
from t1x.campaign.suite import Suite
from t1x.config import Component, Root, load
from t1x.config.discover import discover
from t1x.config.names import closest
from t1x.config.places import find, shown, siblings
from t1x.config.reader import Reader
from t1x.config.statement import Binding, scoped


class SuiteFile(Root):
    """Suites alone, apart from what is evaluated; no file describes one itself."""

    shared: ClassVar[bool] = True

    suites: tuple[Suite, ...]
    """All that the file names."""


def suites_in(name: str, site: str | None) -> tuple[Suite, ...]:
    """The suites of a file, resolved on a site: of an experiment those that it has, of any other file, such as
    `registry/suites/tb21.gin`, each that it gives a name to. Raises `FileNotFoundError`, or `ValueError` with what is wrong."""
    file = find(name)
    if file is None:
        raise FileNotFoundError(f"there is no file {name}{closest(name, siblings(name))}")
    discover()
    bindings = [each for each in Reader().read(file).statements if isinstance(each, Binding)]
    if any(_is(each, Root) for each in bindings):
        root = load(name, site=site).root
        found = root.suites if isinstance(root, Experiment) else ()
    else:
        named = dict.fromkeys(scoped(each.scope, each.component) for each in bindings if _is(each, Suite) and each.field == "name")
        found = _loaded(file, list(named), site) if named else ()
    if not found:
        raise ValueError(f"{shown(file)} has no suite: nothing in it sets the name of one")
    return found


def _loaded(file: Path, named: list[str], site: str | None) -> tuple[Suite, ...]:
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / file.name
        listed = ", ".join(f"@{each}()" for each in named)
        draft.write_text(f"include {str(file.resolve())!r}\nSuiteFile.suites = [{listed}]\n", encoding="utf-8")
        root = load(draft, site=site, root=SuiteFile).root
    assert isinstance(root, SuiteFile)
    return root.suites


def _is(binding: Binding, kind: type[Component]) -> bool:
    return issubclass(Component.registry.get(binding.component, Component), kind)

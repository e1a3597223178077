"""The registry of components, and what every component of t1x keeps to."""

import subprocess
import sys
from typing import Annotated

import pytest

from t1x.config import Component, Role, discover
from t1x.config.docs import described


def ours() -> dict[str, type[Component]]:
    discover()
    return {name: component for name, component in Component.registry.items() if component.__module__.startswith("t1x.")}


def test_every_component_and_field_says_what_it_is():
    """An invariant of component.py."""
    for name, component in ours().items():
        assert component.__doc__, name
        for field in component.model_fields:
            assert described(component, field), f"{name}.{field} has no docstring under it"
            assert component.role(field) in Role


def test_a_field_that_is_declared_again_keeps_its_docstring_and_role(monkeypatch):
    monkeypatch.setattr(Component, "registry", dict(Component.registry))
    monkeypatch.setattr(Component, "kinds", dict(Component.kinds))

    class AgainKind(Component):
        """A kind."""

        size: Annotated[int, Role.SCALE] = 1
        """How big."""

    class AgainSame(AgainKind):
        """Another default."""

        size: int = 2

    class AgainOther(AgainKind):
        """Another meaning."""

        size: Annotated[int, Role.PLACEMENT] = 3
        """How wide."""

    assert (described(AgainSame, "size"), AgainSame.role("size")) == ("How big.", Role.SCALE)
    assert (described(AgainOther, "size"), AgainOther.role("size")) == ("How wide.", Role.PLACEMENT)
    assert described(AgainKind, "size") == "How big."


def test_components_are_frozen_and_refuse_unknown_fields():
    for name, component in ours().items():
        assert component.model_config.get("frozen"), name
        assert component.model_config.get("extra") == "forbid", name


def test_kinds_are_not_components():
    discover()
    assert not set(Component.kinds) & set(Component.registry)
    for name, component in ours().items():
        assert component.kind() is Component.kinds[component.kind().__name__], name


def test_two_components_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr(Component, "registry", dict(Component.registry))
    monkeypatch.setattr(Component, "kinds", dict(Component.kinds))

    class TwinKind(Component):
        """A kind."""

    type("Twin", (TwinKind,), {"__module__": "one"})
    with pytest.raises(ValueError, match="two components are named Twin: one and two; rename one"):
        type("Twin", (TwinKind,), {"__module__": "two"})
    with pytest.raises(ValueError, match="two components are named Twin: one and three"):
        type("Twin", (Component,), {"__module__": "three"})


def plugin(folder, name: str, source: str) -> None:
    """An installed package with one module that declares components by entry point."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[t1x.components]\n{name} = {name}\n")
    (folder / f"{name}.py").write_text(source)


def discovered(folder, code: str) -> subprocess.CompletedProcess[str]:
    text = f"import sys; sys.path.insert(0, {str(folder)!r})\nfrom t1x.config import Component, discover\n{code}"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_components_of_an_installed_package_are_found(tmp_path):
    plugin(tmp_path, "acme", "from t1x.config import Component\nclass AcmeKind(Component): 'K.'\nclass AcmePart(AcmeKind): 'P.'\n")
    finished = discovered(tmp_path, "discover(); print(Component.registry['AcmePart'].kind().__name__)")
    assert finished.stdout == "AcmeKind\n", finished.stderr


def test_a_package_that_ends_the_program_is_named(tmp_path):
    plugin(tmp_path, "exit_acme", "import sys\nsys.exit(0)\n")
    finished = discovered(tmp_path, "try: discover()\nexcept ValueError as error: print(error)")
    assert "the components of the package exit_acme (exit_acme) can't be imported: SystemExit: 0" in finished.stdout


def test_a_package_with_an_entry_point_that_is_no_module_is_named(tmp_path):
    plugin(tmp_path, "odd_acme", "")
    entry = tmp_path / "odd_acme-1.0.dist-info" / "entry_points.txt"
    entry.write_text("[t1x.components]\nodd = no module at all\n")
    finished = discovered(tmp_path, "try: discover()\nexcept ValueError as error: print(error)")
    assert "the components of the package odd_acme (no module at all) can't be imported" in finished.stdout, finished.stderr


def test_a_broken_package_is_named(tmp_path):
    plugin(tmp_path, "broken_acme", "import a_module_that_is_not_there\n")
    finished = discovered(tmp_path, "try: discover()\nexcept ValueError as error: print(error)")
    assert "the components of the package broken_acme (broken_acme) can't be imported: ModuleNotFoundError" in finished.stdout
    assert "repair or uninstall it" in finished.stdout

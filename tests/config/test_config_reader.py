"""Includes: where they are looked up, in which order they count, and what is refused."""

from pathlib import Path

import pytest
from toy_components import ToyCount, ToyRun

from t1x.config import Component, ConfigError, load, places

BASE = "import toy_components\nToyRun.steps = 3\nToyRun.prize = @ToyCount()\n"


def test_an_include_is_found_beside_the_file_then_in_the_project_then_in_the_package(write, tmp_path, monkeypatch):
    package = tmp_path / "package"
    monkeypatch.setattr(places, "_PACKAGE", package)
    (package / "experiments").mkdir(parents=True)
    for place, divisor in (("package/experiments/", 1), ("", 2), ("sub/", 3)):
        write(f"{place}part.gin", f"ToyCount.divisor = {divisor}\n")
    write("package/part.gin", "ToyCount.divisor = 4\n")
    write("sub/a.gin", "include 'part.gin'\n" + BASE)
    assert load("sub/a.gin").root.prize.divisor == 3
    Path("sub/part.gin").unlink()
    assert load("sub/a.gin").root.prize.divisor == 2
    Path("part.gin").unlink()
    resolved = load("sub/a.gin")
    assert resolved.root.prize.divisor == 4
    assert str(resolved.origins["ToyRun.prize.divisor"]) == "package/part.gin:1"


def test_the_package_of_a_checkout_is_the_folder_beside_it():
    root = Path(places.__file__).parents[2]
    assert (root / "pyproject.toml").is_file()
    assert places.package_folder() == root


def test_an_experiment_of_the_package_is_found_from_anywhere(write, tmp_path, monkeypatch):
    package = tmp_path / "package"
    monkeypatch.setattr(places, "_PACKAGE", package)
    write("package/experiments/toy.gin", BASE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    resolved = load("experiments/toy.gin")
    assert resolved.root.steps == 3
    assert resolved.path == package / "experiments/toy.gin"
    assert str(resolved.origins["ToyRun.steps"]) == f"{package}/experiments/toy.gin:2"


def test_a_circle_of_includes_is_an_error(write):
    write("a.gin", "include 'b.gin'\n" + BASE)
    write("b.gin", "include 'sub/c.gin'\n")
    write("sub/c.gin", "include '../a.gin'\n")
    with pytest.raises(ConfigError, match=r"sub/c\.gin:1: .*circle: a\.gin -> b\.gin -> sub/c\.gin -> a\.gin"):
        load("a.gin")


def test_a_file_that_is_included_twice_is_read_once(write):
    """The invariant of reader.py: the second inclusion can't undo what came between."""
    write("base.gin", BASE + "ToyCount.divisor = 1\n")
    write("one.gin", "include 'base.gin'\nToyCount.divisor = 2\n")
    write("two.gin", "include 'base.gin'\nToyRun.name = 'two'\n")
    root = load(write("a.gin", "include 'one.gin'\ninclude 'two.gin'\n")).root
    assert root == ToyRun(steps=3, prize=ToyCount(divisor=2), name="two")


def test_a_missing_include_is_an_error(write):
    with pytest.raises(
        ConfigError, match=r"^a\.gin:1: can't find 'toy_missing\.gin' beside this file, in the working directory, or in"
    ):
        load(write("a.gin", "include 'toy_missing.gin'\n" + BASE))


def test_includes_stand_at_the_top(write):
    write("b.gin", "ToyRun.name = 'b'\n")
    with pytest.raises(ConfigError, match=r"a\.gin:4: an include stands at the top"):
        load(write("a.gin", BASE + "include 'b.gin'\n"))
    assert (
        load(write("c.gin", "import toy_components\ninclude 'b.gin'\nToyRun.steps = 1\nToyRun.prize = @ToyCount()\n")).root.name
        == "b"
    )


def test_a_module_of_components_that_fails_to_import_is_reported(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write("toy_failing.py", "raise OSError('no disk')\n")
    with pytest.raises(ConfigError, match=r"a\.gin:1: import toy_failing fails: OSError: no disk"):
        load(write("a.gin", "import toy_failing\n" + BASE))


def test_a_module_that_ends_the_program_when_imported_is_reported(write, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    write("toy_exiting.py", "raise SystemExit(0)\n")
    with pytest.raises(ConfigError, match=r"a\.gin:1: import toy_exiting fails: SystemExit: 0"):
        load(write("a.gin", "import toy_exiting\n" + BASE))


def test_a_component_whose_fields_cannot_be_is_reported(write, tmp_path, monkeypatch):
    monkeypatch.setattr(Component, "registry", dict(Component.registry))
    monkeypatch.syspath_prepend(tmp_path)
    write("toy_undefined.py", "from toy_components import ToyPrize\n\n\nclass ToyUndefined(ToyPrize):\n    x: 'NoSuchType' = 1\n")
    file = write("a.gin", BASE.replace("@ToyCount()", "@ToyUndefined()") + "import toy_undefined\n")
    with pytest.raises(ConfigError, match=r"a\.gin:\d+: toy_undefined\.ToyUndefined: `ToyUndefined` is not fully defined"):
        load(file)

"""What each command prints and how it exits."""

from pathlib import Path

import cli_toys  # noqa: F401  # registers CliPart
import pytest

from t1x import __version__
from t1x.cli import main
from t1x.cli.catalog import first_sentence
from t1x.config import Component, discover, load

CART = "import cli_toys\nCliCart.part = @CliWheel()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with `cart.gin` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # and so sys.path is restored
    (tmp_path / "cart.gin").write_text(CART)
    return tmp_path


def test_show_tells_notes_on_stderr(folder, capsys):
    (folder / "cart.gin").write_text(CART.replace("@CliWheel", "@a/CliWheel") + "a/CliWheel.spokes = 4\n")
    assert main(["show", "cart.gin", "--set", "CliCart.part = @CliWheel()"]) == 0
    captured = capsys.readouterr()
    assert captured.err == (
        "note: cart.gin:3 sets a/CliWheel.spokes, which isn't used: no CliWheel is built in the scope a any more\n"
    )
    assert "note" not in captured.out


def test_check_reports_every_file_and_every_problem(folder, capsys):
    (folder / "bad.gin").write_text("import cli_toys\nCliCart.prat = 1\nCliCart.label = 5\n")
    assert main(["check", "cart.gin", "bad.gin", "missing.gin", "--site", "laptop"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "cart.gin: ok (site laptop)\n"
    for part in ("bad.gin:2: CliCart has no field prat", "bad.gin:3: CliCart.label = 5"):
        assert part in captured.err
    assert "no file missing.gin" in captured.err
    assert main(["check", "cart.gin"]) == 0


def test_list_of_kinds_counts_components(capsys):
    assert main(["list"]) == 0
    assert "CliPart 1 A part of a toy." in [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_list_of_a_kind_has_a_line_for_each_component(capsys):
    assert main(["list", "CliPart"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "CliPart",
        "A part of a toy.",
        "",
        "CliWheel  Something round, e.g. A of Eq. 20.",
    ]


def test_every_summary_is_a_whole_sentence():
    discover()
    ours = [cls for cls in (*Component.kinds.values(), *Component.registry.values()) if cls.__module__.startswith("t1x.")]
    assert len(ours) > 30
    for cls in ours:
        summary = first_sentence(cls)
        assert summary.endswith("."), summary
        assert not summary.endswith(("Eq.", "e.g.", "i.e.")), summary
        assert summary.count("(") == summary.count(")"), summary


def test_list_of_a_component_shows_its_fields(capsys):
    assert main(["list", "CliWheel"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "CliWheel",
        "Something round, e.g. A of Eq. 20. It turns.",
        "kind CliPart, module cli_toys",
        "",
        "CliWheel.spokes: int, ≥ 0, < 100; default 8; scale",
        "    Number of spokes.",
        "",
        "CliWheel.sizes: tuple[float, ...]; default (1.0, 2.0); algorithm",
        "    Sizes in metres.",
        "",
        "CliWheel.finish: 'matt' | 'gloss'; default 'matt'; algorithm",
        "    How it shines.",
    ]
    assert main(["list", "CliCart"]) == 0
    out = capsys.readouterr().out
    for line in ("CliCart.part: CliPart; required; algorithm", "CliCart.spare: CliPart; default @CliWheel(spokes=3); algorithm"):
        assert line in out
    assert "CliCart.label: str | None; default None; placement" in out


def test_list_of_a_name_that_nothing_has(capsys):
    assert main(["list", "CliWheeel"]) == 2
    more = "One that an experiment imports needs --import MODULE"
    assert capsys.readouterr().err == f"error: no kind or component is called CliWheeel; did you mean 'CliWheel'? {more}\n"
    assert main(["list", "Qzxv"]) == 2
    assert capsys.readouterr().err == f"error: no kind or component is called Qzxv; `t1x list` shows the kinds. {more}\n"


def test_list_of_components_that_an_experiment_imports(folder, capsys, monkeypatch):
    monkeypatch.setattr(Component, "registry", dict(Component.registry))
    for name in ("Sledge", "Canoe"):
        (folder / f"cli_{name.lower()}.py").write_text(
            f"from cli_toys import CliPart\n\n\nclass Cli{name}(CliPart):\n    'No wheels.'\n"
        )
    assert main(["list", "CliPart", "--import", "cli_sledge", "--import", "cli_canoe"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]] == ["CliCanoe", "CliSledge", "CliWheel"]
    assert main(["list", "--import", "cli_nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: import cli_nothing fails: ModuleNotFoundError")


@pytest.mark.parametrize("name", ["CLIPART", "clipart", "cliwheel"])
def test_list_takes_a_name_in_any_case(name, capsys):
    assert main(["list", name]) == 0
    assert capsys.readouterr().out.splitlines()[0].lower() == name.lower()


def test_list_sites(folder, capsys):
    site = folder / "registry" / "sites" / "shed"
    site.mkdir(parents=True)
    (site / "site.gin").write_text("# A shed\u2019s\n# bench. More of it.\n\n# And more.\n", encoding="utf-8")
    assert main(["list", "sites"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any(" ".join(line.split()) == "shed A shed\u2019s bench." for line in lines)
    assert sum("(default)" in line for line in lines) == 1


def test_a_file_with_five_mistakes_has_all_five_listed(folder, capsys):
    mistakes = "CliCart.label = 5\nCliWheel.spokes = 100\nCliWheel.finish = 'dull'\nCliCart.spair = 1\nunused = 1\n"
    (folder / "bad.gin").write_text(CART + mistakes)
    assert main(["check", "bad.gin"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "bad.gin: 5 problems"
    assert [line.split(": ")[0].strip() for line in lines[1:]] == [f"bad.gin:{number}" for number in range(3, 8)]


def test_export_of_a_root_without_tasks(folder, capsys):
    assert main(["tasks", "export", "cart.gin", "out"]) == 2
    assert capsys.readouterr().err == "error: cart.gin describes a CliCart, which has no pool of tasks\n"
    assert not Path("out").exists()


def test_export_writes_tasks_of_the_training_pool(folder, capsys):
    assert main(["tasks", "export", "experiments/quickstart.gin", "out", "--count", "3"]) == 0
    assert capsys.readouterr().out == "3 tasks written to out\n"
    written = list(Path("out").glob("*/instruction.md"))
    pool = load("experiments/quickstart.gin").root.pool.build()
    assert sorted(path.read_text().strip() for path in written) == sorted(pool[index].instruction.strip() for index in range(3))


@pytest.mark.parametrize(
    "command", [[], ["run"], ["show"], ["diff"], ["check"], ["list"], ["schema"], ["new"], ["tasks"], ["tasks", "export"]]
)
def test_help_has_examples(command, capsys):
    assert main([*command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Usage: t1x" in out
    if command != ["tasks"]:
        assert f"  t1x {' '.join(command)}".rstrip() in out.partition("Examples:")[2]


def test_the_help_of_eval_shows_settings_of_an_evaluation(capsys):
    assert main(["eval", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Evaluation.seed" in out.partition("--set ")[2]
    assert "Campaign." not in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"t1x {__version__}\n"

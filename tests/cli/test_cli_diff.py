"""What `t1x diff` prints and how it exits."""

import pytest

from t1x.cli import main

CART = "import cli_toys\nCliCart.part = @CliWheel()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with `cart.gin`, two sites and a package of other parts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "cart.gin").write_text(CART)
    for site, text in {"shed": "", "yard": "CliCart.label = 'yard'\nCliWheel.spokes = 20\n"}.items():
        path = tmp_path / "registry" / "sites" / site
        path.mkdir(parents=True)
        (path / "site.gin").write_text(text)
    (tmp_path / "cli_more.py").write_text(
        "import cli_toys\nclass CliSled(cli_toys.CliPart):\n    'Slides.'\n"
        "    runner: cli_toys.CliPart = cli_toys.CliWheel(spokes=1)\n    'What it slides on.'\n"
    )
    return tmp_path


def told(capsys, *arguments: str) -> tuple[int, list[str]]:
    code = main(["diff", *arguments])
    return code, capsys.readouterr().out.splitlines()


def test_equal_trees_say_so_and_exit_0(folder, capsys):
    code, lines = told(capsys, "cart.gin", "cart.gin", "--site", "shed")
    assert (code, lines[2:]) == (0, ["the same tree"])
    assert lines[0][1:] == lines[1][1:]


def test_two_sites_of_one_file_are_the_same_study(folder, capsys):
    code, lines = told(capsys, "cart.gin@shed", "cart.gin@yard")
    assert code == 1
    assert lines[0].startswith("- cart.gin  site shed  study ")
    assert lines[1].startswith("+ cart.gin  site yard  study ")
    assert lines[2:] == [
        "the same study; differences: 2 of scale, 2 of placement",
        "",
        "scale: sizes",
        "  part.spokes",
        "    - 8  default",
        "    + 20  registry/sites/yard/site.gin:2",
        "  spare.spokes",
        "    - 3  default",
        "    + 20  registry/sites/yard/site.gin:2",
        "",
        "placement: where and with what it runs",
        "  site",
        "    - 'shed'  registry/sites/shed/site.gin",
        "    + 'yard'  registry/sites/yard/site.gin",
        "  label",
        "    - None  default",
        "    + 'yard'  registry/sites/yard/site.gin:1",
    ]


def test_a_replaced_component_has_its_fields_beneath(folder, capsys):
    (folder / "sled.gin").write_text(
        "import cli_more\nCliCart.part = @CliSled()\nCliSled.runner = @a/CliWheel()\na/CliWheel.spokes = 2\n"
    )
    code, lines = told(capsys, "cart.gin", "sled.gin", "--site", "shed")
    assert code == 1
    assert lines[2:] == [
        "two studies; differences: 1 of algorithm",
        "",
        "algorithm: what is studied",
        "  part",
        "    - @CliWheel()  cart.gin:2",
        "    + @CliSled()  sled.gin:2",
        "    + runner = @CliWheel()  sled.gin:3",
        "      + spokes = 2  sled.gin:4",
    ]


def test_a_run_folder_stands_for_its_config(folder, capsys):
    main(["show", "cart.gin", "--format", "gin", "--site", "shed"])
    (folder / "run").mkdir()
    (folder / "run" / "config.gin").write_text(capsys.readouterr().out)
    assert told(capsys, "cart.gin@shed", "run")[0] == 0
    assert main(["diff", "cart.gin", "registry"]) == 2
    assert "registry is a folder without a config.gin" in capsys.readouterr().err


def test_settings_hold_for_both_sides(folder, capsys):
    assert told(capsys, "cart.gin@shed", "cart.gin@yard", "--set", "CliWheel.spokes = 1", "--set", "CliCart.label = 'x'")[1][2] == (
        "the same study; differences: 1 of placement"
    )


def test_a_mistake_exits_2(folder, capsys):
    assert main(["diff", "cart.gin", "cart.gin@nowhere"]) == 2
    assert "there is no site 'nowhere'" in capsys.readouterr().err
    assert main(["diff", "cart.gin", "crat.gin"]) == 2
    assert "did you mean 'cart.gin'?" in capsys.readouterr().err

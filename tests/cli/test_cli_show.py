"""The three formats of `t1x show`."""

import json
import re

import jsonschema
import pytest
import typer
from cli_toys import CliCart, CliWheel

from t1x.cli import main
from t1x.cli.tree import tree
from t1x.config import load
from t1x.config.schema import schema

CART = "import cli_toys\nCliCart.part = @CliWheel()\n"
QUICKSTART = "experiments/quickstart.gin"
SETTINGS = ["--set", "CliWheel.spokes = 5", "--set", "CliCart.label = 'x'"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with `cart.gin` in it and a site of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "cart.gin").write_text(CART)
    site = tmp_path / "registry" / "sites" / "shed"
    site.mkdir(parents=True)
    (site / "site.gin").write_text("# A bench.\n")
    return tmp_path


def test_text_is_a_tree_with_roles(folder, capsys):
    assert main(["show", "cart.gin", "--site", "shed", *SETTINGS]) == 0
    out = capsys.readouterr().out
    head, _, body = out.partition("\n\n")
    assert re.fullmatch(r"file   cart\.gin\nsite   shed\nstudy  [0-9a-f]{16}\nrun    [0-9a-f]{16}", head)
    assert body.splitlines() == [
        "CliCart",
        "  site = 'shed'         placement",
        "  part = CliWheel",
        "    spokes = 5          scale",
        "    sizes = (1.0, 2.0)",
        "    finish = 'matt'",
        "  spare = CliWheel",
        "    spokes = 5          scale",
        "    sizes = (1.0, 2.0)",
        "    finish = 'matt'",
        "  label = 'x'           placement",
    ]


def test_text_with_origins(folder, capsys):
    assert main(["show", "cart.gin", "--origins", "--site", "shed", *SETTINGS]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "  part = CliWheel                  cart.gin:2",
        "    spokes = 5          scale      --set 'CliWheel.spokes = 5'",
        "    finish = 'matt'                default",
    ):
        assert line in lines


def test_a_long_value_leaves_the_columns_of_other_lines_as_they_are(folder, capsys):
    assert main(["show", "cart.gin", "--origins", "--site", "shed"]) == 0
    short = capsys.readouterr().out.splitlines()[4:]
    label = "x" * 65
    assert main(["show", "cart.gin", "--origins", "--site", "shed", "--set", f"CliCart.label = '{label}'"]) == 0
    *others, last = capsys.readouterr().out.splitlines()[4:]
    assert others == short[:-1]
    assert last.startswith(f"  label = '{label}'  placement  --set ")


def test_text_dims_defaults(folder):
    text = tree(load("cart.gin", site="shed", set=["CliCart.label = 'x'"]), origins=False)
    dimmed = {line.strip() for line in text.splitlines() if line.startswith(typer.style("", dim=True, reset=False))}
    assert any("finish" in line for line in dimmed)
    assert not any("label" in line or "part" in line for line in dimmed)


def test_text_shows_long_containers_item_by_item(folder, capsys):
    sizes = tuple(float(size) for size in range(1, 30))
    assert main(["show", "cart.gin", "--set", f"CliWheel.sizes = {sizes}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    sizes" in lines
    assert "      [28] = 29.0" in lines


def test_gin_loads_back(folder, capsys):
    assert main(["show", "cart.gin", "--format", "gin", "--site", "shed", *SETTINGS]) == 0
    (folder / "shown.gin").write_text(capsys.readouterr().out)
    assert load("shown.gin").root == CliCart(site="shed", part=CliWheel(spokes=5), spare=CliWheel(spokes=5), label="x")


def test_gin_with_origins_as_comments(folder, capsys):
    assert main(["show", "cart.gin", "--format", "gin", "--origins", "--set", "CliWheel.spokes = 5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "CliCart.part = @CliWheel()  # cart.gin:2",
        "CliWheel.spokes = 5  # --set 'CliWheel.spokes = 5'",
        "CliCart.label = None  # default",
    ):
        assert line in lines


def test_json_is_what_the_schema_says(folder, capsys):
    assert main(["show", "cart.gin", "--format", "json", *SETTINGS]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["part"] == {"class": "CliWheel", "spokes": 5, "sizes": [1.0, 2.0], "finish": "matt"}
    jsonschema.Draft202012Validator(schema("CliCart")).validate(shown)


def test_json_has_no_origins(folder, capsys):
    assert main(["show", "cart.gin", "--format", "json", "--origins"]) == 2
    assert "--format gin" in capsys.readouterr().err


def test_the_quickstart_shows_what_loads_back(folder, capsys):
    assert main(["show", QUICKSTART, "--format", "gin", "--site", "laptop"]) == 0
    (folder / "shown.gin").write_text(capsys.readouterr().out)
    assert load("shown.gin").root == load(QUICKSTART, site="laptop").root

"""What an experiment names and can't be used: refused by `t1x check`, and by `t1x run` before anything is made."""

from pathlib import Path

import pytest
from own_checkpoint import write

from t1x.cli import main

UNDATED = """{{- strftime_now('%d %b %Y') }}
{%- for m in messages %}{{ '<|open|>' + m.role + m.content + '<|close|>' }}{% endfor %}"""
SYNTAX = "{% if %}"
UNFIT = [
    (UNDATED, "it writes today's date, which changes from day to day; set HuggingFaceTokenizer.date"),
    (SYNTAX, "its line 1: Expected an expression"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(name: str, template: str, *lines: str) -> str:
    """A file, and the folder of its tokenizer."""
    Path(name).mkdir()
    write(Path(name), template)
    own = ("Campaign.tokenizer = @HuggingFaceTokenizer()", f"HuggingFaceTokenizer.path = '{name}'")
    file = Path(f"{name}.gin")
    text = ("include 'experiments/quickstart.gin'", *own, "HuggingFaceTokenizer.vocab_size = 700", *lines, "")
    file.write_text("\n".join(text))
    return str(file)


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize(("template", "message"), UNFIT)
@pytest.mark.parametrize("command", [("check",), ("run",), ("run", "--resume"), ("run", "--smoke")])
def test_a_template_that_cannot_be_rendered_is_refused_before_anything_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], template: str, message: str
) -> None:
    file = experiment("mine", template)
    before = everything_in(folder)
    assert main([*command, file, "--site", "laptop"]) == 2
    told = capsys.readouterr()
    assert f"mine.gin:2: mine/tokenizer_config.json: the chat template can't be rendered: {message}" in told.err
    assert "--resume" not in told.out + told.err
    assert "ok" not in told.out
    assert everything_in(folder) == before


@pytest.mark.parametrize("command", ["check", "run"])
def test_so_is_that_of_a_campaign_that_it_starts_from(folder: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    experiment("first", UNDATED)
    lines = ("HuggingFaceTokenizer.date = '2025-01-31'", "Campaign.start = @CampaignStart()")
    file = experiment("outer", UNDATED, *lines, "CampaignStart.experiment = 'first.gin'")
    before = everything_in(folder)
    assert main([command, file, "--site", "laptop"]) == 2
    told = capsys.readouterr().err
    assert "the campaign 'first.gin' can't be a start: first/tokenizer_config.json: the chat template can't be rendered: " in told
    assert "outer/tokenizer_config.json" not in told
    assert everything_in(folder) == before


def test_mended_as_told_it_is_fine_and_one_that_is_not_here_is_left_to_the_machine_that_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment("mine", UNDATED)
    assert main(["check", file, "--site", "laptop", "--set", "HuggingFaceTokenizer.date = '2025-01-31'"]) == 0
    assert main(["check", file, "--site", "laptop", "--set", "HuggingFaceTokenizer.path = 'nowhere'"]) == 0
    assert capsys.readouterr().out == "mine.gin: ok (site laptop)\n" * 2


def test_a_date_in_another_form_is_told_the_right_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = experiment("mine", UNDATED, "HuggingFaceTokenizer.date = '31.01.2025'")
    assert main(["check", file, "--site", "laptop"]) == 2
    said = (
        "mine.gin:5: HuggingFaceTokenizer.date = '31.01.2025': should be a day of the calendar as YYYY-MM-DD, such as '2025-01-31'"
    )
    assert said in capsys.readouterr().err

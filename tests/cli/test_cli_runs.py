"""`t1x runs` and `t1x eval`, as a user gives them; what they do is tested in tests/campaign and tests/e2e."""

import io
import json
from pathlib import Path

import pytest

from t1x.cli import main


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runs folder of the working directory, with two runs in it."""
    monkeypatch.chdir(tmp_path)
    for name, status in (("quick-1a-0", "finished"), ("quick-1a-0.2", "failed")):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        record = {"name": "quick", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": None}
        (folder / "run.json").write_text(json.dumps({**record, "experiment": "", "status": status, "steps": 4, "started": 1.0}))
        (folder / "weights").write_bytes(bytes(50_000))
    return tmp_path / "runs"


def test_a_bare_command_lists(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["runs"], ["runs", "list"], ["runs", "--runs", str(runs)], ["runs", "list", "--runs", "runs"]):
        assert main(words) == 0
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 1
    lines = [line.split() for line in said[0].splitlines()]
    assert {(line[0], line[1], line[2]) for line in lines[1:3]} == {
        ("quick-1a-0", "finished", "0/4"),
        ("quick-1a-0.2", "failed", "0/4"),
    }
    assert lines[3] == ["2", "runs,", "100", "kB"]


def test_an_empty_folder_and_one_that_is_not_there(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new").mkdir()
    assert main(["runs", "--runs", "new"]) == 0
    assert capsys.readouterr().out == "no runs in new\n"
    assert main(["runs", "--runs", "nowhere"]) == 2
    assert "there is no runs folder nowhere; --runs names another" in capsys.readouterr().err


def test_removing_asks_first(runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["runs", "rm", "quick-1a-0"]) == 1
    assert "quick-1a-0: finished after 0 of 4 steps, 50 kB" in capsys.readouterr().out
    assert (runs / "quick-1a-0").is_dir()
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["runs", "rm", "quick-1a-0"]) == 0
    assert [path.name for path in runs.iterdir()] == ["quick-1a-0.2"]


def test_removing_several_without_asking(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "rm", "--yes", "quick-1a-0", "quick-1a-0.2", str(runs / "quick-1a-0")]) == 0
    assert "removed; 100 kB freed" in capsys.readouterr().out
    assert list(runs.iterdir()) == []
    assert main(["runs", "rm", "--yes", "quick"]) == 2


def test_nothing_is_removed_where_one_of_several_is_no_run(runs: Path) -> None:
    assert main(["runs", "rm", "--yes", "quick-1a-0", "slow"]) == 2
    assert len(list(runs.iterdir())) == 2


def test_what_has_ended_cannot_be_stopped(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "stop", "quick-1a-0"]) == 2
    assert "quick-1a-0 isn't running: it has finished" in capsys.readouterr().err


def test_evaluating_what_is_not_there_is_a_mistake(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "slow", "--suite", "held_out"]) == 2
    assert "there is no run 'slow' in runs" in capsys.readouterr().err
    assert main(["eval", "quick-1a-0", "--suite", "held_out"]) == 2
    assert "quick-1a-0 has kept no weights of a policy" in capsys.readouterr().err

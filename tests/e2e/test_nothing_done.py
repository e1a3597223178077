"""A run that a mistake stops before it has done anything: there is nothing to go on with, and the experiment may have to change."""

from pathlib import Path

import pytest
from open_folder import open_folder
from stores import with_store
from tiny import command_line

from t1x.cli import main


@pytest.mark.ci
def test_it_is_to_be_run_again_without_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_folder() as sandboxes:
        arguments = command_line(with_store(tmp_path / "runs"), sandboxes, "ShellHarness.max_command_tokens = 2")
        assert main(["run", *arguments]) == 2
    told = capsys.readouterr()
    assert "max_command_tokens = 2, needs" in told.err
    assert "Mend what stopped it and run the same command again." in told.out
    assert "--resume" not in told.out + told.err

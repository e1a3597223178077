"""Lock files of grids and starts."""

import os

import pytest

from t1x.campaign.lock import held


def refuse(process: str) -> None:
    raise ValueError(f"process {process} has it")


def test_a_held_lock_names_its_process_and_is_free_afterwards(tmp_path):
    file = tmp_path / "deep" / "lock"
    with held(file, refuse, "Grid.runs"):
        assert file.read_text() == f"{os.getpid()}\n"
        with pytest.raises(ValueError, match=f"process {os.getpid()} has it"), held(file, refuse, "Grid.runs"):
            pass
    with held(file, refuse, "Grid.runs"):
        pass


def test_a_folder_that_cannot_be_made_is_told_with_the_field_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    said = pytest.raises(ValueError, match=r"file/runs can't be written: .*; set Grid\.runs to a folder")
    with said, held(tmp_path / "file" / "runs" / "lock", refuse, "Grid.runs"):
        pass

"""How much disk a run takes."""

import os
from pathlib import Path

from t1x.campaign.disk import disk_use


def test_every_file_counts_once_and_links_lead_nowhere(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints" / "step-1" / "state").mkdir(parents=True)
    (run / "report").mkdir()
    (run / "empty").mkdir()
    (run / "checkpoints" / "step-1" / "state" / "tensors").write_bytes(b"x" * 1000)
    (run / "checkpoints" / "manifest").write_bytes(b"x" * 10)
    (run / "report" / "a.md").write_bytes(b"x" * 100)
    (run / "log.jsonl").write_bytes(b"x" * 7)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "big").write_bytes(b"x" * 5000)
    os.symlink(tmp_path / "elsewhere", run / "linked")
    assert disk_use(run) == 1117


def test_a_folder_that_is_gone_takes_nothing(tmp_path: Path) -> None:
    assert disk_use(tmp_path / "gone") == 0

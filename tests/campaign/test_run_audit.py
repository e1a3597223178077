"""Which files of a run are audited."""

from pathlib import Path

import pytest
from test_gap_trials import trial, write
from test_run_listing import make_run

from t1x.campaign import run_audit
from t1x.campaign.record import Run
from t1x.trajectory.storage_folder import BatchFile, batch_path


def test_files_that_the_run_removes_meanwhile_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = make_run(tmp_path, "toy"), run_audit.trials_of
    for step in (1, 2):
        write(batch_path(run.folder, "train", step), trial("a", [step]), started=run.identity["started"])

    def pruned(*of: Run | str | None) -> list[BatchFile]:
        files = found(*of)
        batch_path(run.folder, "train", 1).unlink()
        return files

    monkeypatch.setattr(run_audit, "trials_of", pruned)
    assert [(each.file.name, each.trials) for each in run_audit.batch_audits(run)] == [("train-2", 1)]

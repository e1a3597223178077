"""Removing runs: their folder and what the store has of them, and never what a living run needs."""

from pathlib import Path

import pytest
from test_run_listing import make_run

from t1x.campaign.evaluation import Evaluation
from t1x.campaign.identity import resolve_starts, run_digest_of
from t1x.campaign.record import Run, Status, alive
from t1x.campaign.removal import check_removable, remove_run
from t1x.campaign.start import CheckpointStart, ScratchStart, Start
from t1x.config import dump, load


def made(runs: Path, name: str, start: Start, status: Status = Status.FINISHED, **more: object) -> Run:
    """A run as an evaluation leaves it, with its config."""
    experiment = load("experiments/eval_tb21.gin", site="laptop").root
    assert isinstance(experiment, Evaluation)
    run = make_run(runs, name, status, **more)
    (run.folder / "config.gin").write_text(dump(experiment.model_copy(update={"start": start, "runs": runs})))
    return run


def test_a_store_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    run = made(tmp_path, "a", ScratchStart(), tracking_id="abc")
    assert remove_run(run) == "a wasn't found in its tracking store"
    assert list(tmp_path.iterdir()) == []


def test_a_run_whose_config_cannot_be_read_can_be_removed(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", tracking_id="abc")
    (run.folder / "config.gin").write_text("Campaign.prat = 1\n")
    assert "a is still in its tracking store: " in remove_run(run)
    assert not run.folder.exists()


def test_one_that_is_running_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path, "a", ScratchStart(), Status.RUNNING)
    with pytest.raises(ValueError, match=r"a is running \(process \d+\); `t1x runs stop a` stops it"):
        check_removable([run])


def test_one_that_a_living_run_starts_from_is_refused(tmp_path: Path) -> None:
    used, other = made(tmp_path, "used", ScratchStart()), made(tmp_path, "other", ScratchStart())
    user = made(tmp_path, "user", CheckpointStart(path=used.folder / "checkpoints" / "start" / "policy"), Status.RUNNING)
    check_removable([used, other])  # its process is gone
    with alive(user.folder):
        check_removable([other])
        with pytest.raises(ValueError, match="user, which is running, starts from used; wait for it or stop it"):
            check_removable([other, used])


def test_one_whose_campaign_a_living_run_starts_from_is_refused(tmp_path: Path) -> None:
    experiment = load("experiments/eval_tb21.gin", site="laptop").root
    assert isinstance(experiment, Evaluation)
    (start,) = resolve_starts(experiment)
    used = make_run(tmp_path, "used", run_digest=start.run_digest)
    user = make_run(tmp_path, "user", Status.RUNNING, run_digest=run_digest_of(experiment))
    (user.folder / "config.gin").write_text(dump(experiment))
    with alive(user.folder), pytest.raises(ValueError, match="user, which is running, starts from used"):
        check_removable([used])

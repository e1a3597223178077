"""Runs that are grouped under another, in a real store."""

from pathlib import Path

import pytest
from mlflow import MlflowClient

from t1x.tracking.mlflow_tracking import MLflowTracking
from t1x.tracking.protocol import Tracking


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def client(runs: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")


def test_a_run_is_shown_under_its_parent_with_its_tags(runs: Path) -> None:
    with MLflowTracking().parent_run(runs / "grid", "grid", {"base": "a.gin"}) as parent:
        assert client(runs).get_run(parent.id).info.status == "RUNNING"
        with MLflowTracking(parent=parent.id, tags={"axis.reward": "dense"}).build(runs / "cell", "cell") as cell:
            pass
    stored = client(runs).get_run(parent.id)
    assert (stored.info.status, stored.info.run_name, stored.data.tags["base"]) == ("FINISHED", "grid", "a.gin")
    tags = client(runs).get_run(cell.id).data.tags
    assert (tags["mlflow.parentRunId"], tags["axis.reward"]) == (parent.id, "dense")
    (child,) = client(runs).search_runs([stored.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.id}'")
    assert child.info.run_id == cell.id


def test_it_is_opened_again_and_closed_with_its_status(runs: Path) -> None:
    folder = runs / "again"
    with pytest.raises(KeyboardInterrupt), MLflowTracking().parent_run(folder, "again", {}) as first:
        raise KeyboardInterrupt
    assert client(runs).get_run(first.id).info.status == "KILLED"
    with pytest.raises(RuntimeError), MLflowTracking().parent_run(folder, "again", {"cells": "8"}) as second:
        raise RuntimeError
    assert second.id == first.id
    assert client(runs).get_run(first.id).info.status == "FAILED"
    with MLflowTracking().parent_run(folder, "again", {}) as third:
        assert third.id == first.id
    stored = client(runs).get_run(first.id)
    assert (stored.info.status, stored.data.tags["cells"]) == ("FINISHED", "8")


def test_another_store_has_one_of_its_own(runs: Path, tmp_path: Path) -> None:
    with MLflowTracking().parent_run(runs / "moved", "moved", {}) as first:
        pass
    elsewhere = MLflowTracking(uri=f"sqlite:///{tmp_path / 'other.db'}")
    with elsewhere.parent_run(runs / "moved", "moved", {}) as second:
        pass
    assert second.id != first.id


def test_it_ends_as_failed_where_one_of_its_runs_did_and_keeps_files(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.md").write_text("# Grid\n")
    with MLflowTracking().parent_run(runs / "partly", "partly", {}) as parent:
        parent.artifact(tmp_path / "grid.md", "report")
        with pytest.raises(ValueError, match="no such file"):
            parent.artifact(tmp_path / "nothing")
        parent.failed = True
    assert client(runs).get_run(parent.id).info.status == "FAILED"
    assert [file.path for file in client(runs).list_artifacts(parent.id, "report")] == ["report/grid.md"]


def test_a_bad_tag_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tag"), MLflowTracking().parent_run(tmp_path / "grid", "grid", {"a//b": ""}):
        pass
    with pytest.raises(ValueError, match="tag"):
        MLflowTracking(tags={"a//b": ""}).build(tmp_path / "cell", "cell")
    assert not any(tmp_path.iterdir())


def test_a_run_of_its_own_belongs_to_no_group() -> None:
    grouped = MLflowTracking(experiment="mine", parent="p", tags={"a": "b"})
    assert grouped.ungrouped() == MLflowTracking(experiment="mine")


def test_a_run_of_a_group_keeps_its_own_tags() -> None:
    grouped = MLflowTracking(tags={"a": "b"}).grouped("p", {"seed": "0"})
    assert grouped == MLflowTracking(parent="p", tags={"a": "b", "seed": "0"})
    assert Tracking().grouped("p", {"seed": "0"}) == Tracking()

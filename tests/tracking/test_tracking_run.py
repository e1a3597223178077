"""A tracked run against a real MLflow store on SQLite."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy
from child import child
from mlflow import MlflowClient

from t1x.tracking import mlflow_run
from t1x.tracking.mlflow_tracking import MLflowTracking
from t1x.tracking.protocol import TrackedRun


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A runs folder; its store is opened once, since that takes seconds."""
    return tmp_path_factory.mktemp("my runs")


@pytest.fixture
def run(runs, request) -> TrackedRun:
    return MLflowTracking().build(runs / request.node.name, request.node.name)


def client(runs: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")


def artifacts(runs: Path, run: TrackedRun) -> Path:
    folder = Path(client(runs).get_run(run.id).info.artifact_uri)
    assert runs in folder.parents
    return folder


def logged(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_it_says_how_its_store_is_looked_at(tmp_path):
    run = tmp_path / "run"
    assert MLflowTracking().build(run, "run").view == f"mlflow ui --backend-store-uri sqlite:///{tmp_path / 'mlflow.db'}"
    assert MLflowTracking(uri="http://host:5000").build(run, "run").view == "http://host:5000"
    spaced = MLflowTracking().build(tmp_path / "my runs" / "run", "run").view
    assert shlex.split(spaced)[-1] == f"sqlite:///{tmp_path / 'my runs' / 'mlflow.db'}"


def test_run_is_read_back_whole(runs, run, tmp_path):
    report = tmp_path / "report.md"
    report.write_text("what happened")
    with run:
        run.params({"actor": {"lr": 3e-4, "adam": {"betas": [0.9, 0.98]}}, "suites": [{"name": "a"}, {"name": "b"}], "empty": {}})
        run.tags({"site": "laptop"})
        run.metrics({"rollout/reward_mean": 0.25, "critic/explained_variance": None}, step=0)
        run.metrics({"rollout/reward_mean": 0.5, "critic/explained_variance": -0.5}, step=1)
        run.artifact(report, "report")
    stored = client(runs).get_run(run.id)
    assert stored.info.status == "FINISHED"
    assert stored.info.run_name == "test_run_is_read_back_whole"
    assert stored.data.params == {
        "actor.lr": "0.0003",
        "actor.adam.betas": "[0.9, 0.98]",
        "suites.0.name": "a",
        "suites.1.name": "b",
        "empty": "{}",
    }
    assert stored.data.tags["site"] == "laptop"
    history = client(runs).get_metric_history
    assert [(m.step, m.value) for m in history(run.id, "rollout/reward_mean")] == [(0, 0.25), (1, 0.5)]
    assert [(m.step, m.value) for m in history(run.id, "critic/explained_variance")] == [(1, -0.5)]
    lines = logged(runs / "test_run_is_read_back_whole")
    assert [line["step"] for line in lines] == [0, 1]
    assert lines[0]["metrics"] == {"rollout/reward_mean": 0.25, "critic/explained_variance": None}
    assert (artifacts(runs, run) / "report" / "report.md").read_text() == "what happened"


def test_folder_artifact_and_missing_artifact(runs, run, tmp_path):
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "best.md").write_text("x")
    with run:
        run.artifact(tmp_path / "trials", "transcripts")
        with pytest.raises(ValueError, match=r"nowhere\.md: no such file"):
            run.artifact(tmp_path / "nowhere.md")
    assert [a.path for a in client(runs).list_artifacts(run.id, "transcripts")] == ["transcripts/best.md"]


def test_long_and_many_params_are_kept_whole_in_an_artifact(runs, run):
    config = {"instruction": "x" * 20_000} | {f"p{i}": i for i in range(250)}
    with run:
        run.params(config)
    stored = client(runs).get_run(run.id).data.params
    assert len(stored) == 251
    assert len(stored["instruction"]) == 6000
    assert stored["instruction"].endswith("[cut, 20000 characters: whole in params.json]")
    whole = json.loads((artifacts(runs, run) / "params.json").read_text())
    assert whole["instruction"] == "x" * 20_000


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "KILLED"),
        (asyncio.CancelledError(), "KILLED"),
        (RuntimeError("no space"), "FAILED"),
        (SystemExit(1), "FAILED"),
    ],
)
def test_closed_with_its_status_whatever_happens(runs, error, status):
    run = MLflowTracking().build(runs / "closed", "closed")
    with pytest.raises(type(error)), run:  # noqa: PT012
        run.metrics({"a": 1.0}, step=3)
        raise error
    stored = client(runs).get_run(run.id)
    assert stored.info.status == status
    assert stored.info.end_time is not None
    assert stored.data.metrics == {"a": 1.0}
    assert stored.data.tags.get("t1x.error") == {"RuntimeError": "RuntimeError: no space", "SystemExit": "SystemExit: 1"}.get(
        type(error).__name__
    )


KILLED = """
import asyncio, sys, time, pathlib
from t1x.tracking import mlflow_run
from t1x.tracking.mlflow_tracking import MLflowTracking
run = MLflowTracking().build(pathlib.Path(sys.argv[1]), "killed")
with run:
    run.metrics({"a": 1.0}, step=0)
    print(run.id, flush=True)
    time.sleep(60)
"""
LOOPING = KILLED.replace("time.sleep(60)", "asyncio.run(asyncio.sleep(60))")


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (KILLED, signal.SIGINT),
        (LOOPING, signal.SIGTERM),
        pytest.param(KILLED, signal.SIGTERM, marks=pytest.mark.ci),
        pytest.param(LOOPING, signal.SIGHUP, marks=pytest.mark.ci),
    ],
)
def test_killed_by_a_signal(runs, code, number, tmp_path):
    folder = runs / tmp_path.name
    with child([sys.executable, "-c", code, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        run_id = process.stdout.readline().strip()
        time.sleep(0.2)  # into the sleep
        process.send_signal(number)
        _, stderr = process.communicate(timeout=240)
    assert "KeyboardInterrupt" in stderr.splitlines()[-1]
    stored = client(runs).get_run(run_id)
    assert stored.info.status == "KILLED"
    assert stored.data.metrics == {"a": 1.0}
    assert logged(folder)[0]["metrics"] == {"a": 1.0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_handlers_are_put_back(run, number):
    assert signal.getsignal(number) is signal.SIG_DFL
    with run:
        assert callable(signal.getsignal(number))
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_hang_up_stays_ignored(run):
    """As `nohup` has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_every_metric_is_in_the_log_before_the_block_ends(runs, run):
    with run:
        run.metrics({"a": 1.0}, step=0)
        assert logged(runs / "test_every_metric_is_in_the_log_before_the_block_ends")[0]["metrics"] == {"a": 1.0}


def test_a_bad_step_leaves_nothing(runs, run):
    with run:
        with pytest.raises(ValueError, match="'b' is nan"):
            run.metrics({"a": 1.0, "b": float("nan")}, step=0)
        run.metrics({"a": 2.0}, step=0)
    assert client(runs).get_run(run.id).data.metrics == {"a": 2.0}


def test_a_store_that_fails_at_the_end_does_not_hide_the_error(runs, run):
    with pytest.raises(RuntimeError, match="the real one") as caught, run:  # noqa: PT012
        run.metrics({"a": 1.0}, step=0)
        client(runs).delete_run(run.id)  # MLflow refuses to log to a deleted run
        raise RuntimeError("the real one")
    assert "log.jsonl" in caught.value.__notes__[0]


def test_the_store_is_written_to_once_for_many_metrics(runs, run, monkeypatch):
    """Each write is a transaction of its own, which waits for the disk."""
    monkeypatch.setattr(mlflow_run, "PATIENCE", float("inf"))
    writes: list[str] = []

    def executed(connection, cursor, statement, *_):
        if statement.startswith("INSERT INTO metrics"):
            writes.append(statement)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", executed)
    try:
        with run:
            for step in range(100):
                run.metrics({f"group/metric_{i}": step * i / 7 for i in range(30)}, step)
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", executed)
    assert 0 < len(writes) <= 100 * 30 / mlflow_run.BATCH + 1
    assert len(client(runs).get_metric_history(run.id, "group/metric_29")) == 100


def test_stderr_is_silent_and_nothing_is_left_in_the_working_folder(tmp_path):
    code = KILLED.replace("time.sleep(60)", "run.params({'x': 1}); run.artifact(pathlib.Path(sys.argv[1]), 'all')")
    empty = tmp_path / "cwd"
    empty.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW", "GIT"))} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "runs" / "one")], cwd=empty, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout.split()) == 1
    assert list(empty.iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["artifacts", "mlflow.db", "one"]


def test_runs_that_start_together_in_a_new_folder(tmp_path):
    code = KILLED.replace("    time.sleep(60)\n", "")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands = [[sys.executable, "-c", code, tmp_path / name] for name in "ab"]
    with child(commands[0], **pipes) as one, child(commands[1], **pipes) as other:
        for process in (one, other):
            run_id, stderr = process.communicate(timeout=240)
            assert stderr == ""
            assert client(tmp_path).get_run(run_id.strip()).info.status == "FINISHED"


def test_experiment_and_store_of_the_users_choice(runs, tmp_path):
    tracking = MLflowTracking(uri=f"sqlite:///{runs / 'mlflow.db'}", experiment="mine")
    with tracking.build(tmp_path / "elsewhere", "x") as run:
        pass
    mine = client(runs).get_experiment_by_name("mine")
    assert client(runs).get_run(run.id).info.experiment_id == mine.experiment_id
    client(runs).delete_experiment(mine.experiment_id)
    with pytest.raises(ValueError, match=r"'mine' was deleted .* restore it"), tracking.build(tmp_path / "again", "x"):
        pass


def test_a_new_store_shows_no_experiment_but_the_runs_own(tmp_path):
    with MLflowTracking().build(tmp_path / "one", "x"):
        pass
    assert [found.name for found in client(tmp_path).search_experiments()] == ["t1x"]


def test_the_experiment_that_mlflow_makes_can_be_chosen(tmp_path):
    with MLflowTracking(experiment="Default").build(tmp_path / "one", "x"):
        pass
    assert [found.name for found in client(tmp_path).search_experiments()] == ["Default"]


def test_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be written"), MLflowTracking().build(tmp_path / "file" / "run", "x"):
        pass


def test_a_store_that_is_no_database_is_refused_at_once(tmp_path):
    (tmp_path / "mlflow.db").write_text("this is a text file, not a database\n" * 100)
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"mlflow\.db can't be used .*not a database.* set MLflowTracking.uri"):
        MLflowTracking().build(tmp_path / "run", "x").__enter__()
    assert time.monotonic() - start < 30


def test_unknown_store_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nosuch://store can't be opened"):
        MLflowTracking(uri="nosuch://store").build(tmp_path / "run", "x").__enter__()

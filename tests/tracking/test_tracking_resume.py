"""A tracked run that goes on, in a real MLflow store on SQLite, after processes that were killed."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlflow import MlflowClient

from t1x.tracking.log import MetricLog, read_log
from t1x.tracking.mlflow_tracking import MLflowTracking
from t1x.tracking.protocol import Resumed


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def folder(runs: Path, request: pytest.FixtureRequest) -> Path:
    return runs / request.node.name


def client(runs: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")


def history(runs: Path, run_id: str, name: str) -> list[tuple[int, float]]:
    return [(each.step, each.value) for each in client(runs).get_metric_history(run_id, name)]


def steps(folder: Path) -> list[tuple[int, dict]]:
    return [(entry.step, dict(entry.metrics)) for entry in read_log(folder)]


KILLED = """
import os, signal, sys
from pathlib import Path
from t1x.tracking.mlflow_tracking import MLflowTracking
with MLflowTracking().build(Path(sys.argv[1]), "killed") as run:
    run.params({"lr": 1, "steps": 5})
    for step in range(3):
        run.metrics({"a": step / 4, "missing": None}, step)
    position = run.position
    run._flush() if sys.argv[2] == "flushed" else None
    for step in range(3, 6):
        run.metrics({"a": step / 4}, step)
    if sys.argv[2] == "flushed":
        run._flush()
    print(run.id, position, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path, how: str) -> Resumed:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), how], capture_output=True, text=True)
    run_id, position = done.stdout.split()
    return Resumed(run_id, int(position))


@pytest.mark.parametrize("how", ["flushed", "buffered"])
def test_a_killed_run_goes_on_as_the_same_run_with_every_value_once(runs: Path, folder: Path, how: str) -> None:
    """Of the part that is made again, step 3 comes out equal and step 4 doesn't."""
    resumed = killed(folder, how)
    assert client(runs).get_run(resumed.id).info.status == "RUNNING"
    assert history(runs, resumed.id, "a") == ([(step, step / 4) for step in range(6)] if how == "flushed" else [])
    assert len(steps(folder)) == 6
    with MLflowTracking().build(folder, "killed", resumed) as run:
        assert run.id == resumed.id
        assert run.position == resumed.log_bytes
        run.params({"lr": 1, "steps": 5})
        with pytest.raises(ValueError, match="already logged at step 2"):
            run.metrics({"missing": 1.0}, 2)
        for step, value in ((3, 0.75), (4, 9.0), (5, 1.25), (6, 1.5)):
            run.metrics({"a": value}, step)
    stored = client(runs).get_run(run.id)
    assert (stored.info.status, stored.data.params) == ("FINISHED", {"lr": "1", "steps": "5"})
    made = [(0, 0.0), (1, 0.25), (2, 0.5), (3, 0.75), (4, 9.0), (5, 1.25), (6, 1.5)]
    assert sorted(history(runs, run.id, "a")) == sorted([*made, *([(4, 1.0)] if how == "flushed" else [])])
    assert [(step, metrics["a"]) for step, metrics in steps(folder)] == made


def test_the_value_that_came_last_is_the_one_that_is_shown(runs: Path, folder: Path) -> None:
    """Three processes make step 0: 1, then 2, then 1 again."""
    resumed = None
    for value in (1.0, 2.0, 1.0):
        with pytest.raises(RuntimeError), MLflowTracking().build(folder, "x", resumed) as run:  # noqa: PT012
            run.metrics({"a": value}, 0)
            raise RuntimeError
        resumed = Resumed(run.id, 0)
    assert client(runs).get_run(run.id).data.metrics == {"a": 1.0}
    with MLflowTracking().build(folder, "x", Resumed(run.id, 10**9)) as again:
        pass
    stored = client(runs).get_run(again.id)
    assert (stored.info.status, "t1x.error" in stored.data.tags) == ("FINISHED", False)
    assert len(history(runs, run.id, "a")) == 3


def test_what_a_store_lost_comes_from_the_log(runs: Path, folder: Path, tmp_path: Path) -> None:
    with MLflowTracking().build(folder, "x") as first:
        first.metrics({"a": 1.0, "b": None}, 0)
        first.metrics({"a": 2.0}, 1)
        position = first.position
    client(runs).delete_run(first.id)
    resumed = Resumed(first.id, position)
    elsewhere = f"sqlite:///{tmp_path / 'new.db'}"
    for uri in (None, elsewhere):
        lost = pytest.warns(UserWarning, match=f"has lost run {first.id}; a new one is made")
        with lost, MLflowTracking(uri=uri).build(folder, "x", resumed) as run:
            pass
        assert run.id != first.id
        found = MlflowClient(uri or f"sqlite:///{runs / 'mlflow.db'}").get_metric_history(run.id, "a")
        logged = [entry.time for entry in read_log(folder)]
        assert [(each.step, each.value) for each in found] == [(0, 1.0), (1, 2.0)]
        assert [each.timestamp / 1000 for each in found] == pytest.approx(logged, abs=0.002)


def test_a_run_that_the_store_never_had_is_made_without_a_word(folder: Path) -> None:
    folder.mkdir()
    (folder / "log.jsonl").write_text('{"step": 0, "time": 1.0, "metrics": {"a": 1.0}}\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with MLflowTracking().build(folder, "x", Resumed(None, 0)) as run:
            run.metrics({"a": 2.0}, 0)
    assert steps(folder) == [(0, {"a": 2.0})]


def test_changed_parameters_are_kept_beside_the_first_ones(runs: Path, folder: Path) -> None:
    with MLflowTracking().build(folder, "x") as run:
        run.params({"lr": 1, "steps": 5})
    with MLflowTracking().build(folder, "x", Resumed(run.id, run_bytes(folder))) as again:
        again.params({"lr": 1, "steps": 7, "new": 1})
    data = client(runs).get_run(run.id).data
    assert data.params == {"lr": "1", "steps": "5", "new": "1"}
    assert json.loads(data.tags["t1x.changed"]) == {"steps": "7"}
    artifact = Path(client(runs).get_run(run.id).info.artifact_uri) / "params.json"
    assert json.loads(artifact.read_text())["steps"] == "7"


def run_bytes(folder: Path) -> int:
    return (folder / "log.jsonl").stat().st_size


names = st.sampled_from(["a", "b/c", "é"])
lines = st.lists(st.dictionaries(names, st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=3), max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines=lines, torn=st.floats(0, 1), kept=st.floats(0, 1.2))
def test_a_log_cut_anywhere_goes_on_after_its_last_whole_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict], torn: float, kept: float
) -> None:
    folder = tmp_path_factory.mktemp("log")
    ends = [0]
    with MetricLog(folder) as log:
        for step, metrics in enumerate(lines):
            log.write(metrics, step)
            ends.append(log.position)
    torn, kept = round(torn * ends[-1]), round(kept * ends[-1])
    (folder / "log.jsonl").write_bytes((folder / "log.jsonl").read_bytes()[:torn])
    whole = sum(end <= torn for end in ends[1:])
    assert steps(folder) == list(enumerate(lines[:whole])), "a torn line is left out"
    with MetricLog(folder, kept) as log:
        stays = sum(end <= min(torn, kept) for end in ends[1:])
        assert log.position == ends[stays]
        for name in {name for metrics in lines[:stays] for name in metrics}:
            last = max(step for step, metrics in enumerate(lines[:stays]) if name in metrics)
            with pytest.raises(ValueError, match=f"already logged at step {last}"):
                log.write({name: 1.0}, last)
        log.write({"a": 1.5}, len(lines))
    assert steps(folder) == [*enumerate(lines[:stays]), (len(lines), {"a": 1.5})]


def test_no_log_yet(tmp_path: Path) -> None:
    assert read_log(tmp_path) == []
    with MetricLog(tmp_path / "run", 100) as log:
        assert log.position == 0


@pytest.mark.parametrize("line", ["\0\0\0", '{"step": 1}', "[1]", '{"step": 1, "time": 1, "metrics": {}, "more": 1}'])
def test_a_damaged_line_within_a_log_is_named(tmp_path: Path, line: str) -> None:
    good = '{"step": 0, "time": 1.0, "metrics": {}}\n'
    (tmp_path / "log.jsonl").write_text(f"{good}{line}\n{good}")
    with pytest.raises(ValueError, match=r"log\.jsonl:2: the line is damaged"):
        read_log(tmp_path)

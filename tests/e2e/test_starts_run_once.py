"""A campaign that others start from is run once, and they start from its last weights."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import mlflow
import pytest
from child import child
from open_folder import open_folder
from starting import first, start_from, write
from stores import with_store

import t1x
from t1x.campaign.record import Status, read_run
from t1x.model.checkpoint import load_pretrained
from t1x.model.value import ValueModel


def weights(folder: Path, network: str) -> bytes:
    return (folder / network / "model.safetensors").read_bytes()


@pytest.fixture
def places(tmp_path: Path):
    """Bindings that keep a run below a temp folder, whatever its file says."""
    runs = with_store(tmp_path / "runs")
    with open_folder() as sandboxes:
        yield [f"Experiment.runs = '{runs}'", f"BubblewrapSandbox.root = '{sandboxes}'"]


def test_two_campaigns_start_from_one_run_of_a_third(tmp_path: Path, places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    file = first(tmp_path)
    both = write(tmp_path, "both", *start_from(file, critic=True))
    alone = write(tmp_path, "alone", *start_from(file))
    one = t1x.run(t1x.load(both, site=None, set=places))
    said = capsys.readouterr().out
    assert "first.gin: run first, once" in said
    assert said.count("compare runs: ") == 1, "for the run that was asked for, not for its start"
    other = t1x.run(t1x.load(alone, site=None, set=places))
    assert "first.gin: using " in capsys.readouterr().out

    found = t1x.runs(tmp_path / "runs")
    assert [run.name for run in found] == ["alone", "both", "first"], "newest first, and the start once"
    assert {run.status for run in found} == {Status.FINISHED}
    (start,) = [run for run in found if run.name == "first"]
    assert (one.folder, other.folder) == (found[1].folder, found[0].folder)
    assert start.weights == start.folder / "checkpoints" / "step-1"
    for run in (one, other):
        assert weights(run.folder / "checkpoints" / "start", "policy") == weights(start.weights, "policy")
    trained = load_pretrained(start.weights / "critic", ValueModel)
    assert trained.score.weight.abs().sum() > 0, "or the next line would say nothing"
    assert weights(one.folder / "checkpoints" / "start", "critic") == weights(start.weights, "critic")
    untrained = load_pretrained(other.folder / "checkpoints" / "start" / "critic", ValueModel)
    assert untrained.score.weight.abs().sum() == 0, "the policy's decoder with a head of zeros"


REST = [pytest.param(lost, marks=pytest.mark.ci) for lost in ("critic", "critic/model.safetensors")]


@pytest.mark.parametrize("lost", ["policy/model.safetensors", *REST])
def test_a_start_whose_weights_are_partly_gone_is_run_again(
    tmp_path: Path, places: list[str], capsys: pytest.CaptureFixture[str], lost: str
) -> None:
    file = first(tmp_path)
    start = t1x.run(t1x.load(file, site=None, set=places))
    path = start.weights / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    t1x.run(t1x.load(write(tmp_path, "both", *start_from(file, critic=True)), site=None, set=places))
    assert "first.gin: run first, once" in capsys.readouterr().out


def run_at_once(names: tuple[str, ...], tmp_path: Path, places: list[str]) -> list[str]:
    """Campaigns with these names, begun at once, each in its process; what they said. The start was run once."""
    file = first(tmp_path)
    settings = [argument for place in places for argument in ("--set", place)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with ExitStack() as running:
        processes = []
        for name in names:
            command = [sys.executable, "-m", "t1x.cli", "run", write(tmp_path, name, *start_from(file)), *settings]
            begun = child(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
            processes.append(running.enter_context(begun))
        said = [process.communicate(timeout=240)[0] for process in processes]
    assert {process.returncode for process in processes} == {0}, said
    assert sorted(run.name for run in t1x.runs(tmp_path / "runs")) == sorted(["first", *names])
    assert {text.splitlines()[0].split()[0] for text in said} == {"site"}
    assert sum("run first, once" in text for text in said) == 1
    assert sum("another process runs it; waiting" in text or "first.gin: using " in text for text in said) == len(names) - 1
    return said


@pytest.mark.ci
def test_processes_that_need_the_same_start_run_it_once(tmp_path: Path, places: list[str]) -> None:
    said = run_at_once(("left", "right"), tmp_path, places)
    assert sum("another process runs it; waiting" in text for text in said) == 1


@pytest.mark.soak
def test_many_processes_that_need_the_same_start_run_it_once(tmp_path: Path, places: list[str]) -> None:
    run_at_once(("a", "b", "c"), tmp_path, places)


def test_an_interrupted_start_leaves_nothing_to_go_on_with(tmp_path: Path, places: list[str]) -> None:
    file = first(tmp_path, "Campaign.critic_warmup = 20")
    outer = write(tmp_path, "outer", *start_from(file))
    settings = [argument for place in places for argument in ("--set", place)]
    command = [sys.executable, "-m", "t1x.cli", "run", outer, *settings]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            if "critic warm-up 1/20" in line:
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    (killed,) = t1x.runs(tmp_path / "runs")
    assert (killed.name, killed.status) == ("first", Status.KILLED)
    first(tmp_path, "Campaign.critic_warmup = 0")
    t1x.run(t1x.load(outer, site=None, set=places))
    assert sorted((run.name, run.status) for run in t1x.runs(tmp_path / "runs")) == [
        ("first", Status.FINISHED),
        ("first", Status.KILLED),
        ("outer", Status.FINISHED),
    ]


@pytest.mark.ci
def test_a_killed_run_says_so(tmp_path: Path, places: list[str]) -> None:
    file = first(tmp_path, "Campaign.critic_warmup = 200")
    settings = [argument for place in places for argument in ("--set", place)]
    command = [sys.executable, "-m", "t1x.cli", "run", file, *settings]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with child(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            if "critic warm-up 1/200" in line:
                break
        (folder,) = (tmp_path / "runs").glob("first-*")
        running = read_run(folder)
        assert (running.status, running.pid) == (Status.RUNNING, process.pid)
        assert running.tracking_id
    deadline = time.monotonic() + 20
    while read_run(folder).status is Status.RUNNING and time.monotonic() < deadline:
        time.sleep(0.1)  # a child that was just forked has its lock until it becomes another program
    assert read_run(folder).status is Status.KILLED


def test_a_smoke_test_and_what_it_starts_from_are_kept_apart(tmp_path: Path, places: list[str]) -> None:
    file = first(tmp_path, "Campaign.batch = 8")
    outer = write(tmp_path, "outer", *start_from(file), "Campaign.steps = 9", "Campaign.batch = 8")
    run = t1x.run(t1x.load(outer, site=None, set=places, smoke=True))
    assert run.smoke
    assert [each.name for each in t1x.runs(tmp_path / "runs" / "smoke")] == ["outer", "first"]
    assert t1x.runs(tmp_path / "runs") == []
    assert (tmp_path / "runs" / "smoke" / "mlflow.db").is_file()
    store = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}")
    assert store.get_experiment_by_name("t1x") is None
    again = t1x.load(run.folder / "config.gin").root
    assert (again.steps, again.batch, again.smoke) == (1, 4, True)


def test_a_tree_built_in_python_runs(tmp_path: Path, places: list[str]) -> None:
    root = t1x.load(first(tmp_path, "Campaign.steps = 0"), site=None, set=places).root
    run = t1x.run(root)
    assert (run.name, run.experiment, run.status) == ("campaign", "", Status.FINISHED)
    repeated = t1x.run(t1x.load(run.folder / "config.gin"))
    assert repeated.folder == run.folder.with_name(f"{run.folder.name}.2")


def test_a_grid_runs_from_python(tmp_path: Path, places: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    base = first(tmp_path, "Campaign.steps = 0", places[1])
    grid = tmp_path / "grid.gin"
    grid.write_text(f"Grid.base = '{base}'\nGrid.axes = {{'reward': {{'length': []}}}}\nGrid.runs = '{tmp_path / 'runs'}'\n")
    assert t1x.run(t1x.load(grid, site=None)) == [], "no cell failed"
    assert [run.status for run in t1x.runs(tmp_path / "runs")] == [Status.FINISHED]

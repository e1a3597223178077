"""However a run ends, nothing is left: no sandbox folder, no child process, no open MLflow run, and the user is told what to do."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import mlflow
import pytest
from child import child
from leftovers import wait_until_nothing_is_left
from open_folder import open_folder
from stores import with_store
from tiny import command_line

import t1x
from t1x.campaign.record import Status
from t1x.tasks.export import export_pool
from t1x.tasks.synthetic import SyntheticPool

T1X = str(Path(sys.executable).parent / "t1x")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    with open_folder() as sandboxes:
        yield tmp_path / "runs", sandboxes


def start(arguments: list[str], **options: object) -> AbstractContextManager[subprocess.Popen[str]]:
    return child(
        [T1X, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )


def statuses(runs: Path) -> list[str]:
    client = mlflow.MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    return [run.info.status for run in client.search_runs([client.get_experiment_by_name("t1x").experiment_id])]


@pytest.mark.parametrize(
    ("number", "said", "longer"),
    [
        (signal.SIGINT, "untrained", "Campaign.steps = 50"),
        pytest.param(signal.SIGHUP, "demonstrations recorded", "Supervised.steps = 200", marks=pytest.mark.ci),
        pytest.param(signal.SIGTERM, "critic warm-up", "Campaign.critic_warmup = 50", marks=pytest.mark.ci),
    ],
)
def test_an_interrupted_run_leaves_nothing(folders: tuple[Path, Path], number: int, said: str, longer: str) -> None:
    runs, sandboxes = folders
    with start(command_line(with_store(runs), sandboxes, longer)) as process:
        for line in process.stdout:
            if said in line:
                break
        process.send_signal(number)
        output, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "stopped:" in output
    assert ". Run the same command with --resume to go on." in output
    assert "Traceback" not in errors
    assert statuses(runs) == ["KILLED"]
    assert [run.status for run in t1x.runs(runs)] == [Status.KILLED]
    wait_until_nothing_is_left([], sandboxes, process.pid)


def broken_pool(tmp_path: Path) -> Path:
    pool = tmp_path / "pool"
    export_pool(SyntheticPool(split="train", size=4).build(), pool, None)
    return pool


def test_a_task_without_tests_is_named_before_anything_starts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    runs, sandboxes = folders
    pool = broken_pool(tmp_path)
    (script,) = sorted(pool.glob("*/tests/test.sh"))[2:3]
    script.unlink()
    with start(command_line(runs, sandboxes, "Campaign.pool = @FolderPool()", f"FolderPool.path = '{pool}'")) as process:
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 2, errors
    assert str(script.parent.parent) in errors
    assert "test.sh" in errors
    assert "Traceback" not in errors
    assert not runs.exists()
    wait_until_nothing_is_left([], sandboxes, process.pid)


@pytest.mark.parametrize(
    ("script", "cause"),
    [pytest.param("sleep 100", "timeout", marks=pytest.mark.ci), ("echo garbage > /logs/verifier/ctrf.json", "unparsable")],
)
def test_a_verifier_that_never_judges_fails_the_run_and_says_why(
    folders: tuple[Path, Path], tmp_path: Path, script: str, cause: str
) -> None:
    runs, sandboxes = folders
    pool = broken_pool(tmp_path)
    for task in pool.iterdir():
        (task / "tests" / "test.sh").write_text(script + "\n")
        settings = (task / "task.toml").read_text()
        (task / "task.toml").write_text(settings.replace("timeout_sec = 30.0", "timeout_sec = 1.0"))
    changes = (
        "Campaign.start = @ScratchStart()",
        "Campaign.pool = @FolderPool()",
        f"FolderPool.path = '{pool}'",
        "TestCountReward.exclude_baseline = False",
        "Campaign.suites = []",
    )
    with start(command_line(with_store(runs), sandboxes, *changes)) as process:
        output, errors = process.communicate(timeout=240)
    assert process.returncode == 2, output
    assert cause in errors
    assert "(task train-" in errors
    assert "Traceback" not in errors
    assert "Mend what stopped it and run the same command with --resume to go on." in output
    assert statuses(runs) == ["FAILED"]
    (failed,) = t1x.runs(runs)
    assert failed.status is Status.FAILED
    assert cause in (failed.error or "")
    wait_until_nothing_is_left([], sandboxes, process.pid)


def test_a_host_without_bubblewrap_is_told_what_to_install(folders: tuple[Path, Path], tmp_path: Path) -> None:
    runs, sandboxes = folders
    with start(command_line(runs, sandboxes), env={"PATH": str(tmp_path), "HOME": str(tmp_path)}) as process:
        output, errors = process.communicate(timeout=240)
    assert process.returncode == 3, errors
    assert "bubblewrap" in errors
    assert "Traceback" not in errors
    assert not runs.exists() or not [path for path in runs.iterdir() if path.is_dir()], output
    wait_until_nothing_is_left([], sandboxes, process.pid)


def test_a_folder_that_cannot_be_written_is_named(folders: tuple[Path, Path], tmp_path: Path) -> None:
    _, sandboxes = folders
    (tmp_path / "file").write_text("")
    with start(command_line(tmp_path / "file" / "runs", sandboxes)) as process:
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 2, errors
    assert str(tmp_path / "file" / "runs") in errors
    assert "Traceback" not in errors
    wait_until_nothing_is_left([], sandboxes, process.pid)

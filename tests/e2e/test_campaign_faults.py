"""Whole campaigns whose tasks, sandboxes or own process fail."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest
import starting
from child import child
from faulty_rollout import POOL, TASK, broken
from leftovers import wait_until_nothing_is_left
from stores import with_store

import t1x
from t1x.campaign.record import Status
from t1x.sandbox.child import children
from t1x.tasks.export import write_task
from t1x.tasks.task import Task, TaskFile
from t1x.tracking.log import read_log

CAMPAIGN = ("Campaign.start = @ScratchStart()", "Campaign.pool = @FolderPool()", "Campaign.steps = 2", "Campaign.batch = 6")


def a_pool(folder: Path, *bad: Task) -> Path:
    """These tasks and as many good ones, all in the folders of a pool."""
    pool = folder / "pool"
    pool.mkdir()
    for i, task in enumerate([*bad, *(POOL[i] for i in range(len(bad)))]):
        write_task(dataclasses.replace(task, name=f"task-{i}"), pool)
    return pool


def campaign(folder: Path, sandboxes: Path, pool: Path, *more: str) -> list[str]:
    """The arguments of `t1x run` for one."""
    runs = with_store(folder / "runs")
    lines = [
        *CAMPAIGN,
        f"FolderPool.path = '{pool}'",
        f"Campaign.runs = '{runs}'",
        f"BubblewrapSandbox.root = '{sandboxes}'",
        *more,
    ]
    file = starting.write(folder, "faulty", *lines)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("SyntheticPool.")))
    return [str(file)]


def start(arguments: list[str], folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path.cwd())])}
    program = [sys.executable, "-m", "t1x.cli", "run", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return child(program, cwd=folder, env=environment, text=True, start_new_session=True, **pipes)


def killed_with_its_janitor(process: subprocess.Popen[str]) -> None:
    """SIGKILL to both at once, so that nobody is left to tidy up."""
    os.kill(process.pid, signal.SIGSTOP)
    janitors = [pid for pid in children(process.pid) if b"t1x-sandboxes" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in (*janitors, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.ci
def test_a_campaign_goes_on_and_counts_what_went_wrong(sandboxes: Path, tmp_path: Path) -> None:
    """Also where the one before it was killed outright with its janitor, whose work is left to it."""
    hanging = dataclasses.replace(TASK, tests=(TaskFile("test.sh", b"sleep 100\n"),), verifier_timeout=1.0)
    silent = dataclasses.replace(TASK, tests=(TaskFile("test.sh", b"true\n"),))
    pool = a_pool(tmp_path, hanging, silent, broken(TASK))
    arguments = campaign(tmp_path, sandboxes, pool, "BubblewrapSandbox.per_node = 2")
    with start([*arguments, "--set", "Campaign.steps = 50"], tmp_path) as process:
        next(line for line in process.stdout if "step 1/" in line)
        killed_with_its_janitor(process)
    assert os.listdir(sandboxes) != [], "nothing was left to tidy up"
    with start(arguments, tmp_path) as process:
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    wait_until_nothing_is_left([], sandboxes, process.pid)
    (run,) = (run for run in t1x.runs(tmp_path / "runs") if run.status is Status.FINISHED)
    entries = [entry for entry in read_log(run.folder) if "rollout/launched" in entry.metrics]
    assert [entry.step for entry in entries] == [1, 2]
    for entry in entries:
        metrics = entry.metrics
        assert (metrics["rollout/admitted"], metrics["rollout/invalid"]) == (3, 3)
        assert (metrics["rollout/invalid/verifier_error"], metrics["rollout/invalid/sandbox_error"]) == (2, 1)
        assert (metrics["sandbox/created"], metrics["sandbox/failed"]) == (5, 1)
        assert metrics["time/sandbox_most_at_once"] == 2
        assert metrics["time/sandbox_wait_p95"] > 0


def test_a_campaign_whose_sandboxes_never_come_stops_and_says_why(sandboxes: Path, tmp_path: Path) -> None:
    pool = a_pool(tmp_path, broken(TASK), broken(POOL[1]), broken(POOL[2]))
    (file,) = campaign(tmp_path, sandboxes, pool, "Guards.empty_steps = 1", "BubblewrapSandbox.setup_deadline = 0.000001")
    with pytest.raises(
        ValueError, match=r"nothing to learn from in step 1: of 6 trials none had .* \(0 admitted, 6 invalid\)"
    ) as said:
        t1x.run(t1x.load(file, site=None))
    assert "its sandbox wasn't made within setup_deadline (1e-06 s)" in str(said.value)
    (run,) = t1x.runs(tmp_path / "runs")
    assert run.status is Status.FAILED


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_campaigns_killed_at_random_moments_leave_nothing(sandboxes: Path, tmp_path: Path) -> None:
    """Half of them with their janitor, whose work the next start does; the last one tidies up."""
    arguments = campaign(tmp_path, sandboxes, a_pool(tmp_path, TASK), "Campaign.steps = 10_000", "Campaign.batch = 16")
    rng = random.Random(0)
    for number in range(20):
        with start(arguments, tmp_path) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(2, 12))
            assert process.poll() is None, process.communicate()
            if number % 2:
                process.kill()
                process.communicate()
                until = time.monotonic() + 30
                while (left := list(sandboxes.glob(f"t1x-sandboxes-{process.pid}-*"))) and time.monotonic() < until:
                    time.sleep(0.1)
                assert not left
            else:
                killed_with_its_janitor(process)
    with start([*arguments, "--set", "Campaign.steps = 1"], tmp_path) as process:
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    wait_until_nothing_is_left([], sandboxes, process.pid)

"""A check that is stopped in the middle, in order or not, leaves nothing behind and goes on."""

import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from child import child

from t1x.tasks.manifest import NAME, read_manifest

TASKS = 6
DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\n"
TEST = """#!/bin/bash
test -f answer.txt && passed=1 || passed=0
(( passed )) && status=passed || status=failed
echo '{"results": {"summary": {"tests": 1, "passed": '$passed', "failed": '$((1 - passed))'}, "tests": [{"name": "answer",
    "status": "'$status'"}]}}' > /logs/verifier/ctrf.json
"""


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """The solution of the last task waits for longer than any test does."""
    for number in range(TASKS):
        texts = {
            "task.toml": "",
            "instruction.md": f"Write {number} to answer.txt.",
            "environment/Dockerfile": DOCKERFILE,
            "tests/test.sh": TEST,
            "solution/solve.sh": f"echo {number} > answer.txt" + ("\nsleep 600" if number == TASKS - 1 else ""),
        }
        for path, text in texts.items():
            file = tmp_path / "pool" / f"task-{number}" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return tmp_path / "pool"


def start(pool: Path, temp: Path) -> AbstractContextManager[subprocess.Popen]:
    command = [sys.executable, "-m", "t1x.cli", "tasks", "check", str(pool), "--repeats", "1", "--jobs", "2"]
    environment = {**os.environ, "TMPDIR": str(temp)}
    return child(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(condition, what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_a_check_that_is_stopped_leaves_nothing_behind_and_goes_on(kind, pool, sandboxes):
    journal = pool / f"{NAME}.journal"
    with start(pool, sandboxes) as first:
        wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") == TASKS, "all but the last task are done")
        first.send_signal(kind)
        said = first.communicate(timeout=240)[0]
    assert first.returncode == (130 if kind == signal.SIGINT else -signal.SIGKILL)
    if kind == signal.SIGINT:
        assert f"{TASKS - 1} of {TASKS} tasks are done and kept" in said
        assert said.endswith("interrupted\n")
    wait_for(lambda: not list(sandboxes.glob("t1x-sandboxes-*")), "the sandboxes are gone")
    assert read_manifest(pool / NAME) is None

    (pool / f"task-{TASKS - 1}" / "solution/solve.sh").write_text("echo 5 > answer.txt")
    with journal.open("ab") as torn:
        torn.write(b'{"name": "task-5", "entry": {"sha2')
    with start(pool, sandboxes) as second:
        said = second.communicate(timeout=240)[0]
    assert second.returncode == 0, said
    assert f"{TASKS - 1} of {TASKS} tasks were checked before" in said
    assert "1 run in" in said
    manifest = read_manifest(pool / NAME)
    assert manifest is not None
    assert {name: entry.assertions for name, entry in manifest.tasks.items()} == {f"task-{n}": ("answer",) for n in range(TASKS)}
    assert not journal.exists()


def test_a_second_check_of_the_same_pool_is_refused(pool, sandboxes):
    journal = pool / f"{NAME}.journal"
    with start(pool, sandboxes) as first:
        wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") == TASKS, "all but the last task are done")
        with start(pool, sandboxes) as second:
            assert "another check of this pool is running" in second.communicate(timeout=240)[0]
        assert second.returncode == 2
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=240)
    wait_for(lambda: not list(sandboxes.glob("t1x-sandboxes-*")), "the sandboxes are gone")

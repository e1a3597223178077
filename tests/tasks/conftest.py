import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from t1x.tasks.disk import write_files
from t1x.tasks.task import Task

Grade = Callable[[Task, Path], tuple[int, dict[str, bool]]]


@pytest.fixture
def grade(tmp_path: Path) -> Grade:
    """Runs a task's verifier on a work folder; (exit code, assertion -> passed), the report checked for its own consistency."""

    def run(task: Task, work: Path) -> tuple[int, dict[str, bool]]:
        tests, report = tmp_path / "tests", tmp_path / "logs" / "ctrf.json"
        report.parent.mkdir(exist_ok=True)
        write_files(task.tests, tests)
        argv = [sys.executable, "-I", "-S", "-B", str(tests / "verify.py"), str(work), str(report)]
        code = subprocess.run(argv, env={}, timeout=30, check=False).returncode
        results = json.loads(report.read_bytes())["results"]
        passed = {test["name"]: test["status"] == "passed" for test in results["tests"]}
        assert len(passed) == len(results["tests"]) == results["summary"]["tests"]
        assert results["summary"]["passed"] == sum(passed.values())
        assert results["summary"]["failed"] == len(passed) - sum(passed.values())
        assert (report.parent / "reward.txt").read_text() == f"{all(passed.values()):d}\n"
        report.unlink()
        return code, passed

    return run


def run_commands(commands: tuple[str, ...], task: Task, work: Path) -> None:
    """A fresh work folder, then the commands in one shell, as an agent's turns are."""
    work.mkdir()
    write_files(task.environment, work)
    subprocess.run(["bash"], input="\n".join(commands), text=True, cwd=work, stdout=subprocess.DEVNULL, timeout=30, check=True)


@pytest.fixture
def shell() -> Callable[[tuple[str, ...], Task, Path], None]:
    return run_commands

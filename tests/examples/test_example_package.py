"""A third-party package, installed as a user would, is found and used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "t1x_example"


@pytest.fixture(scope="module")
def t1x(tmp_path_factory):
    """Runs `t1x` in an empty folder, with the example package installed."""
    target, work = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("work")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, str(EXAMPLE)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "t1x.cli", *arguments]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_it_is_listed_like_our_own(t1x):
    assert "Tolerant         1 where no more assertions fail than are tolerated." in t1x("list", "Reward")
    assert "SumPool.largest: int, ≥ 1; default 99; algorithm" in t1x("list", "SumPool")


def test_its_experiment_loads(t1x):
    assert t1x("check", str(EXAMPLE / "experiments" / "sums.gin"), "--site", "laptop").endswith("ok (site laptop)\n")


def test_its_resolved_text_names_the_package(t1x):
    assert t1x("show", str(EXAMPLE / "experiments" / "sums.gin"), "--format", "gin").startswith("import t1x_example.pool\n")


def test_its_tasks_are_judged_as_they_say(t1x, tmp_path):
    """The verifier of an exported task: nothing done, and the reference solution."""
    import json

    t1x("tasks", "export", str(EXAMPLE / "experiments" / "sums.gin"), str(tmp_path / "tasks"), "--count", "1")
    (task,) = (tmp_path / "tasks").iterdir()
    script = (task / "tests" / "test.sh").read_text()
    work = tmp_path / "work"
    work.mkdir()
    script = script.replace("/logs/verifier", str(work)).replace("/tests", str(task / "tests"))
    solution = (task / "solution" / "solve.sh").read_text()
    for commands, passed in (("", 0), ("echo wrong > sum.txt", 1), (solution, 2)):
        subprocess.run(["bash", "-c", commands], cwd=work, check=True)
        subprocess.run(["bash", "-c", script], cwd=work, check=True)
        summary = json.loads((work / "ctrf.json").read_text())["results"]["summary"]
        assert (summary["passed"], summary["failed"]) == (passed, 2 - passed)

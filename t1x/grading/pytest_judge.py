"""How the judge of pytest tests is started in a fresh sandbox, and how its record is read."""

import importlib.util
import json
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from t1x.grading.ctrf import parse_ctrf
from t1x.grading.report import Cause, VerifierReport, unusable
from t1x.sandbox.isolation import CANDIDATE, RECORD
from t1x.sandbox.protocol import ExecResult
from t1x.tasks.task import Task, is_pytest
from t1x.tasks.work_folder import TOOLS

_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""pytest and what it needs; nothing else that is installed beside t1x can be imported by a test."""
_BOOT = """import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import judge.compiled
from judge.main import main
main()"""
_JUDGE = f"{TOOLS}/judge"
_ALL_PASSED, _SOME_FAILED, _NOTHING_COLLECTED = 0, 1, 5
"""Exit statuses of pytest."""


@dataclass(frozen=True, slots=True)
class JudgeCommand:
    """What `run_fresh` is given."""

    argv: tuple[str, ...]
    system: dict[Path, str]


def judge_command(task: Task, tests: str) -> JudgeCommand:
    """The judge over the task's test files, which are mounted at `tests`."""
    python, system = _python()
    libraries = {path: f"{TOOLS}/lib/{path.name}" for path in map(_package, _PACKAGES)}
    paths = sorted(file.path for file in task.tests if is_pytest(file))
    given = (str(RECORD), CANDIDATE, json.dumps(dict(task.variables)), tests, ":".join(libraries.values()))
    arguments = (_JUDGE, *given, *(f"{tests}/{path}" for path in paths))
    judge = Path(__file__).with_name("judge")
    return JudgeCommand((*python, "-I", "-S", "-B", "-c", _BOOT, *arguments), {**system, **libraries, judge: _JUDGE})


@cache
def _python() -> tuple[tuple[str, ...], dict[Path, str]]:
    """(words that start this interpreter inside, the files it takes there); a system's own is there already."""
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if executable.is_relative_to("/usr"):
        return (str(executable),), {}
    base, inside = Path(sys.base_prefix).resolve(), Path(TOOLS, "python")
    files = [executable, Path(sysconfig.get_path("stdlib")).resolve()]
    library = base / "lib" / (sysconfig.get_config_var("INSTSONAME") or "")
    preload: tuple[str, ...] = ()
    if library.is_file() and library.suffix != ".a":
        files.append(library)
        preload = ("/usr/bin/env", f"LD_PRELOAD={inside / library.relative_to(base)}")
    system = {path: str(inside / path.relative_to(base)) for path in files}
    return (*preload, system[executable]), system


@cache
def _package(name: str) -> Path:
    """Its folder, or its file."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} isn't installed"
    return Path(spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin or "")


def read_record(result: ExecResult, assertions: int | None) -> VerifierReport:
    """What the judge has found, told by its record alone; `assertions` is how many the pool knows of."""
    lines = [_line(line) for line in result.record.splitlines()]
    for line in lines:
        if "in_process" in line:
            what = f"the tests were about to run, in the judge's process, {line['in_process']}"
            return unusable("in_process", f"{what}; run it as a program (subprocess) instead, and compare what it prints")
    if not lines or "exit" not in lines[-1]:
        cause: Cause = "missing" if result.exit_code == 0 else "crashed"
        return unusable(cause, "the judge ended without a result")
    return _report(lines[-1], assertions)


def _report(end: dict[str, Any], assertions: int | None) -> VerifierReport:
    status, errors = end["exit"], end["errors"]
    if errors:
        return _uncollected(errors)
    if status not in (_ALL_PASSED, _SOME_FAILED, _NOTHING_COLLECTED):
        return unusable("crashed", f"pytest ended with status {status}")
    report = parse_ctrf(json.dumps(end["ctrf"]).encode(), assertions)
    failed = sum(test["status"] == "failed" for test in end["ctrf"]["results"]["tests"])
    if report.cause is None and (status == _SOME_FAILED) != (failed > 0):
        return unusable("summary_mismatch", f"pytest ended with status {status}, but {failed} tests failed")
    return report


def _uncollected(errors: list[dict[str, str]]) -> VerifierReport:
    """Tests that can't begin attest that not every assertion holds, unless that is so whatever the agent did: then they judge
    nothing."""
    own = [error for error in errors if error["kind"] != "other"]
    first = (own or errors)[0]
    detail = f"not all tests can be collected: {first['file']}: {first['text']}"
    if first["kind"] == "import":
        detail += "; tests can import the standard library, pytest and what stands beside them"
    return unusable("crashed", detail, outcome=None if own else False)


def _line(line: bytes) -> dict[str, Any]:
    """One line of the record; empty where it was cut off."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

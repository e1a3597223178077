"""What pytest found, one entry a test; each case of a parametrised one is a test of its own."""

import os
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

_SHOWN = 500
"""Characters of a failure's text that are kept; what matters in it comes last."""


class Results:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self.errors: list[dict[str, str]] = []
        """What can't be collected: the file, the `kind` of the error (`import`; `syntax` of the tests themselves; `other`), its
        text."""
        self._began = time.time()
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_configure(self) -> None:
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)  # the tests' programs get the task's environment, not the judge's

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None and isinstance(call.excinfo.value, MemoryError):
            traceback.clear_frames(call.excinfo.tb)  # what they hold leaves no room to tell the failure

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: Any) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
                error = error.__cause__  # what the test file raised
            text = traceback.format_exception_only(error)[-1].strip()
            self.errors.append({"file": node.nodeid, "kind": _kind(error, node.config.rootpath), "text": text[:_SHOWN]})

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self._tests[item.nodeid] = {"name": item.nodeid, "status": "pending", "duration": 0}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests[report.nodeid]
        test["duration"] += round(1000 * report.duration)
        if report.failed:
            test["status"] = "failed"
            test["message"] = report.longreprtext[-_SHOWN:]
        elif test["status"] != "failed":
            if report.skipped:
                test["status"] = "skipped"
            elif report.when == "call":  # one that was expected to fail and passes isn't what its author means by a pass
                test["status"] = "other" if hasattr(report, "wasxfail") else "passed"

    def ctrf(self) -> dict[str, Any]:
        """The CTRF document (ctrf.io)."""
        tests = list(self._tests.values())
        statuses = [test["status"] for test in tests]
        counts = {status: statuses.count(status) for status in ("passed", "failed", "skipped", "pending", "other")}
        times = {"start": round(1000 * self._began), "stop": round(1000 * time.time())}
        return {"results": {"tool": {"name": "pytest"}, "summary": {"tests": len(tests), **counts, **times}, "tests": tests}}


def _kind(error: BaseException, tests: Path) -> str:
    """`ast.literal_eval` raises a `SyntaxError` too, over what the agent wrote: the tests' own one names a file of theirs."""
    if isinstance(error, ImportError):
        return "import"
    own = isinstance(error, SyntaxError) and error.filename is not None and Path(error.filename).is_relative_to(tests)
    return "syntax" if own else "other"

"""What pytest found, one entry a test; each case of a parametrised one is a test of its own."""

import os
import time
from typing import Any

import pytest

_SHOWN = 500
"""Characters of a failure's text that are kept; what matters in it comes last."""


class Results:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        """What can't be collected, and why."""
        self._began = time.time()
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_configure(self) -> None:
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)  # the tests' programs get the task's environment, not the judge's

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid}: {report.longreprtext[-_SHOWN:]}")

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

"""A judge as is usual in the field: the agent's own sandbox, its shell and its environment; the tests are copied in and run there,
and the report is read from a folder that anyone in it may write."""

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from t1x.grading.pytest_judge import judge_command
from t1x.sandbox.system_root import system_links
from t1x.tasks.task import Task
from t1x.tasks.work_folder import TOOLS

SYSTEM = [
    *f"--ro-bind /usr /usr --ro-bind /etc /etc --proc /proc --dev /dev --dir {TOOLS}".split(),
    *system_links(),
]
NAMESPACES = (
    "--unshare-user --unshare-pid --as-pid-1 --unshare-ipc --unshare-net --unshare-uts --uid 1000 --gid 1000 --cap-drop ALL "
    "--die-with-parent"
)
WRITABLE = {"app": "/app", "tmp": "/tmp", "logs": "/logs", "home": "/home/agent", "tests": "/tests", "bin": "/usr/local/bin"}
TEST_SH = """cd /app
if pytest -q -p no:cacheprovider --junitxml=/logs/verifier/report.xml /tests/test_outputs.py
then echo 1 >/logs/verifier/reward.txt; else echo 0 >/logs/verifier/reward.txt; fi
"""


@dataclass(frozen=True)
class Verdict:
    """What a judge found."""

    full: bool
    passed: int
    cause: str | None = None
    """Why there is no verdict, where there is none."""


def judge_naively(task: Task, commands: str, seconds: float = 100.0, races: bool = False) -> Verdict:
    """The agent's commands, then the verdict; the cause `hangs` where none comes within so many seconds. Where it
    `races`, nobody looks at the verdict before those processes had their time.

    `timeout` is the first process of its pid namespace: bubblewrap ends when it has ended, and everything else in there with it.
    Else a daemon might still write into the folder while it is removed."""
    with tempfile.TemporaryDirectory() as root:
        folders = {Path(root, name): inside for name, inside in WRITABLE.items()}
        for folder in (*folders, Path(root, "held"), Path(root, "logs/verifier")):
            folder.mkdir(exist_ok=True)
        for name, files in (("app", task.environment), ("held", task.tests)):
            for file in files:
                Path(root, name, file.path).write_bytes(file.content)
        Path(root, "held/test.sh").write_text(TEST_SH)
        command = judge_command(task, "/tests")
        python = command.argv[: command.argv.index("-I")]
        libraries = {os.path.dirname(path) for path in command.system.values() if "/lib/" in path}
        start = f"import sys; sys.path += {sorted(libraries)!r}; import pytest; sys.exit(pytest.console_main())"
        Path(root, "bin/pytest").write_text(f'#!/bin/bash\nexec {" ".join(python)} -c "{start}" "$@"\n')
        Path(root, "bin/pytest").chmod(0o755)
        binds = [word for folder, inside in folders.items() for word in ("--bind", str(folder), inside)]
        binds += [word for source, inside in command.system.items() for word in ("--ro-bind", str(source), inside)]
        wait = "for i in $(seq 80); do sleep 0.1; grep -q 1 /logs/verifier/reward.txt && break; done" if races else ":"
        shell = f"cd /app\n{commands}\nrm -f /logs/verifier/reward.txt; cp /held/* /tests/; bash /tests/test.sh; {wait}"
        within = ["/usr/bin/timeout", "--kill-after=1", str(seconds), "/bin/bash", "-c", shell]
        argv = ["bwrap", *NAMESPACES.split(), *SYSTEM, *binds, "--ro-bind", f"{root}/held", "/held", "--", *within]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent", "LANG": "C.UTF-8"}
        ran = subprocess.run(argv, env=env, capture_output=True, stdin=subprocess.DEVNULL)
        assert b"bwrap:" not in ran.stderr, ran.stderr
        return Verdict(False, 0, "hangs") if ran.returncode == 124 else read(Path(root))


def read(root: Path) -> Verdict:
    """What is found in the report's folder, wherever it leads."""
    logs = root / "logs/verifier"
    if logs.is_symlink():
        logs = root / os.readlink(logs).lstrip("/")
    reward = (logs / "reward.txt").read_text().strip() if (logs / "reward.txt").exists() else "0"
    try:
        cases = list(ElementTree.parse(logs / "report.xml").iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    return Verdict(reward == "1", sum(len(case) == 0 for case in cases))

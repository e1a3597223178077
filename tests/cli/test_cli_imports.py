"""Commands that only read import nothing heavy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "mlflow", "transformers", "matplotlib", "tokenizers", "safetensors", "scipy", "pandas", "ray", "asyncio"}
LIGHT_BUT_NOT_FOR_HELP = {"pydantic", "numpy", "gin", "rich"}


def imported_by(*arguments: str) -> set[str]:
    """The top-level packages that a command imports."""
    command = [sys.executable, "-X", "importtime", "-m", "t1x.cli", *arguments]
    environment = {**os.environ, "COLUMNS": "80"}
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    lines = [line for line in finished.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_help_imports_nothing_but_the_command_line():
    found = imported_by("--help")
    assert "typer" in found
    assert not found & (HEAVY | LIGHT_BUT_NOT_FOR_HELP)


QUICKSTART = "experiments/quickstart.gin"


LAPTOP = ("--site", "laptop")
READING = [
    ("show", QUICKSTART, *LAPTOP),
    ("show", QUICKSTART, "--origins", "--format", "gin", *LAPTOP),
    ("show", QUICKSTART, "--format", "json", *LAPTOP),
    ("diff", QUICKSTART, QUICKSTART, *LAPTOP),
    ("check", QUICKSTART, *LAPTOP),
    ("list",),
    ("list", "Campaign"),
    ("list", "sites"),
    ("schema",),
    ("runs", "--runs", "tests"),
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_commands_that_read_import_nothing_heavy(arguments):
    found = imported_by(*arguments)
    assert "pydantic" in found
    assert not found & HEAVY


def test_stopping_a_run_imports_nothing_heavy(tmp_path):
    code = (
        "import sys\nimport t1x.campaign.find_run, t1x.campaign.stopping\nprint(*{name.partition('.')[0] for name in sys.modules})"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(finished.stdout.split()) & HEAVY

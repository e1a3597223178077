"""Exit codes and messages, as a shell sees them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from child import child

from t1x.cli import main
from t1x.config import dump, load
from t1x.trajectory.storage_folder import batch_path
from t1x.trajectory.storage_writer import TrialWriter

HERE = str(Path(__file__).parent)
COMMAND = str(Path(sys.executable).parent / "t1x")
"""The installed script: it doesn't put the working directory on Python's path as `python -m` does."""
FAULT = "TypeError: Object of type object is not JSON serializable"
CART = "import cli_toys\nCliCart.part = @CliWheel()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setenv("PYTHONPATH", HERE, prepend=os.pathsep)
    (tmp_path / "cart.gin").write_text(CART)
    return tmp_path


SECOND = {"export": ["out"], "diff": ["cart.gin"]}
"""The second argument of commands that take one."""


def t1x(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [("run",), ("show",), ("diff",), ("check",), ("tasks", "export")])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CART + "CliWheel.spokes = 500\n", "cart.gin:3: CliWheel.spokes = 500: should be less than 100"),
        (CART + "CliWheel.spoks = 5\n", "cart.gin:3: CliWheel has no field spoks; did you mean 'spokes'?"),
        (None, "there is no file cart.gin"),
    ],
)
def test_a_mistake_is_one_message_and_exit_2(folder, capsys, command, text, message):
    if text is None:
        Path("cart.gin").unlink()
    else:
        Path("cart.gin").write_text(text)
    assert main([*command, "cart.gin", *SECOND.get(command[-1], [])]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ([] if text is None else ["cart.gin"])


def test_a_file_that_cannot_be_read(folder, capsys):
    """PermissionError and its like name the file. (root may read everything, so a folder stands in the way of a file here.)"""
    Path("cart.gin").unlink()
    Path("plain").write_text("")
    assert main(["tasks", "export", "experiments/quickstart.gin", "plain/out"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: plain")
    assert "Traceback" not in err


def test_usage_errors_exit_2():
    for arguments in (["nope"], ["run"], ["show", "a.gin", "--nope"]):
        finished = t1x(*arguments)
        assert finished.returncode == 2
        assert "Usage" in finished.stderr
        assert "Traceback" not in finished.stderr


def test_a_fault_shows_a_traceback_and_keeps_a_log(folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder))
    finished = t1x("show", "cart.gin", "--set", "CliCart.label = 'fault'")
    assert finished.returncode == 1
    assert FAULT in finished.stderr
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("error: this is a fault in t1x, not in what you gave it; its log is ")
    log = Path(last.rpartition(" ")[2])
    assert log.parent == folder
    assert FAULT in log.read_text()
    assert "cart.gin" in log.read_text()


def test_a_fault_is_told_where_its_log_cannot_be_kept(folder, monkeypatch, capsys):
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(folder / "missing")])
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(["show", "cart.gin", "--set", "CliCart.label = 'fault'"]) == 1
    err = capsys.readouterr().err
    assert FAULT in err
    assert "its log can't be kept" in err.splitlines()[-1]


def test_a_bug_in_a_component_of_ones_own_is_told_in_a_line(folder, monkeypatch):
    """The library that raised isn't to blame either; the whole traceback is kept."""
    monkeypatch.setenv("TMPDIR", str(folder))
    finished = t1x("show", "cart.gin", "--set", "CliCart.label = 'bug'")
    (line,) = finished.stderr.splitlines()
    told, _, log = line.rpartition("; its traceback is ")
    assert (finished.returncode, finished.stdout) == (2, "")
    number = 1 + Path(HERE, "cli_toys.py").read_text().splitlines().index("            json.dumps(object())")
    assert told == f"error: CliCart._fragile ({HERE}/cli_toys.py:{number}) fails: {FAULT}; this isn't t1x's code"
    assert "Traceback (most recent call last)" in Path(log).read_text()


def test_a_mistake_of_a_component_of_ones_own_says_where(folder, capsys, monkeypatch):
    """Where nothing of t1x tells: `float` says only what it got."""
    Path("mine.py").write_text(
        "from t1x.tasks.pool import Pool\nclass CliPool(Pool):\n    'Mine.'\n    def build(self):\n        return [float('many')]\n"
    )
    Path("mine.gin").write_text("include 'experiments/quickstart.gin'\nimport mine\nCampaign.pool = @CliPool()\n")
    monkeypatch.syspath_prepend(folder)
    assert main(["tasks", "export", "mine.gin", "out"]) == 2
    assert capsys.readouterr().err == "error: could not convert string to float: 'many', in CliPool.build (mine.py:5)\n"


def test_a_tree_that_describes_nothing_that_runs_is_refused(folder, capsys):
    assert main(["run", "cart.gin", "--site", "laptop"]) == 2
    assert capsys.readouterr().err == "error: a CliCart describes nothing that runs\n"
    assert [path.name for path in folder.iterdir()] == ["cart.gin"]


def test_what_is_missing_here_exits_3(folder, capsys):
    assert main(["show", "cart.gin", "--set", "CliCart.label = 'absent'"]) == 3
    captured = capsys.readouterr()
    assert "environment variable CLI_TOY (its key)" in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [("show", "cart.gin"), ("list",)])
def test_a_full_disk_is_the_users_to_mend(folder, arguments):
    with open("/dev/full", "w") as full:
        finished = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr == "error: a disk is full; make room and run the command again ([Errno 28] No space left on device)\n"


def test_sizes_beyond_the_memory_are_the_users_to_mend(folder, capsys):
    assert main(["show", "cart.gin", "--set", "CliCart.label = 'large'"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: memory ran out; choose smaller sizes ([enforce fail")


def test_a_full_disk_is_known_by_what_libraries_say(folder, capsys):
    assert main(["show", "cart.gin", "--set", "CliCart.label = 'full'"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device (os error 28)" in line


def test_a_module_in_the_working_directory_can_be_imported(folder):
    Path("my_parts.py").write_text("import cli_toys\nclass CliMine(cli_toys.CliPart):\n    'Mine.'\n")
    Path("cart.gin").write_text("import cli_toys\nimport my_parts\nCliCart.part = @CliMine()\n")
    finished = t1x("check", "cart.gin", "--site", "laptop")
    assert (finished.returncode, finished.stdout) == (0, "cart.gin: ok (site laptop)\n")


def test_ctrl_c_exits_130_with_one_line(folder):
    Path("slow.py").write_text("import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(60)\n")
    Path("cart.gin").write_text("import slow\n")
    with child([COMMAND, "show", "cart.gin"], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not Path("started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "interrupted\n")


@pytest.mark.parametrize("command", [("list",), ("diff", "cart.gin", "cart.gin"), ("audit", "quick-1a-0")])
def test_output_that_nobody_reads_is_no_verdict(folder, command):
    """Of commands whose exit code 1 means something: as `t1x audit RUN | head -1` ends."""
    _a_run(folder / "runs" / "quick-1a-0")
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([COMMAND, *command], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


def _a_run(folder: Path) -> None:
    """One with a stored batch of no trials."""
    path = batch_path(folder, "train", 1)
    with TrialWriter(path, {}):
        pass
    record = {"name": "quick", "kind": "Campaign", "run_digest": "d", "study_digest": "s", "seed": 0, "site": None, "started": 1.0}
    (folder / "run.json").write_text(json.dumps({**record, "experiment": "", "status": "finished"}))
    (folder / "config.gin").write_text(dump(load("experiments/quickstart.gin").root))

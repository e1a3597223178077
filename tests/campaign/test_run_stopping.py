"""Stopping a run from another process."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_run_listing import make_run

from t1x.campaign.record import Status, read_run
from t1x.campaign.stopping import stop_run

CODE = """
import signal, sys, time
from pathlib import Path
from t1x.campaign.record import Status, alive, read_run
from dataclasses import replace
folder = Path(sys.argv[1])
def end(*_):
    if sys.argv[2] == "orderly":
        read_run(folder).ended(Status.KILLED, 1.0).save()
        raise SystemExit
signal.signal(signal.SIGTERM, end)
with alive(folder):
    import os
    replace(read_run(folder), pid=os.getpid()).save()
    print("here", flush=True)
    while True:
        time.sleep(0.05)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """Starts a process that does as a run does; how it takes SIGTERM is its argument."""
    started = []

    def started_as(how: str) -> Path:
        folder = make_run(tmp_path, how, Status.RUNNING).folder
        process = subprocess.Popen([sys.executable, "-c", CODE, str(folder), how], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        return folder

    yield started_as
    for process in started:
        process.kill()
        process.wait()


def test_it_is_asked_to_end_and_waited_for(start) -> None:
    folder = start("orderly")
    ended = stop_run(read_run(folder), 30.0)
    assert ended is not None
    assert (ended.status, ended.seconds > 0) == (Status.KILLED, True), "by itself, in order"
    assert not (folder / ".running").exists()


def test_one_that_takes_longer_is_left_to_it(start) -> None:
    folder = start("stubborn")
    assert stop_run(read_run(folder), 0.3) is None
    assert read_run(folder).status is Status.RUNNING


def test_one_that_is_not_running_or_not_here_is_told(start, tmp_path: Path) -> None:
    for status, said in ((Status.FINISHED, "it has finished"), (Status.FAILED, "it failed"), (Status.KILLED, "it was killed")):
        with pytest.raises(ValueError, match=f"{status} isn't running: {said}"):
            stop_run(make_run(tmp_path, str(status), status), 1.0)
    away = replace(read_run(start("orderly")), pid=2**22 + 1)  # above what Linux gives
    with pytest.raises(ValueError, match="isn't one of this machine; stop it where it runs"):
        stop_run(away, 1.0)

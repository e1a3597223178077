"""Stopping a run from another process: it is asked to end in order, as by Ctrl-C, and waited for."""

import os
import signal
import time

from t1x.campaign.record import Run, Status, is_locked, read_run

POLL = 0.2
"""Seconds between two looks at the run."""
ENDED = {Status.FINISHED: "it has finished", Status.FAILED: "it failed", Status.KILLED: "it was killed"}
"""How a run that has ended is told of."""


def stop_run(run: Run, patience: float) -> Run | None:
    """Sends SIGTERM to a run's process and gives its record once it has ended; None where it hasn't after `patience` seconds.
    Raises `ValueError` where it isn't running or its process can't be reached."""
    if run.status is not Status.RUNNING:
        raise ValueError(f"{run.folder.name} isn't running: {ENDED[run.status]}")
    try:
        os.kill(run.pid, signal.SIGTERM)
    except ProcessLookupError:
        raise ValueError(f"{run.folder.name}: its process {run.pid} isn't one of this machine; stop it where it runs") from None
    except PermissionError:
        raise ValueError(f"{run.folder.name}: its process {run.pid} is another user's; ask that one, or stop it as root") from None
    deadline = time.monotonic() + patience
    while is_locked(run.folder):
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL)
    return read_run(run.folder)

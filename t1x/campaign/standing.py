"""How a run stands, for a list of runs. Read from its folder, so that it's known of one that is still going too."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.disk import disk_use
from t1x.campaign.record import Run, Status
from t1x.campaign.wording import with_error
from t1x.tracking.log import LOG

TAIL = 1 << 20
"""Bytes at the end of a log that are looked through: hundreds of steps."""
EVERY_STEP = "time/step"
"""A metric that every training step has, and nothing else."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands."""

    run: Run
    step: int
    """Training steps made."""
    seconds: float
    """How long it ran, or has been running; NaN for one that was killed outright."""
    disk: int
    """Bytes of its folder."""
    score: str
    """What the last policy comes to on the first suite (its resolved rate where nothing else is said); empty where it isn't known
    yet."""


def standing(run: Run) -> Standing:
    """How a run stands now."""
    running = run.status is Status.RUNNING
    seconds = time.time() - run.started if running else run.seconds or float("nan")
    return Standing(run, steps_made(run.folder), seconds, disk_use(run.folder), _score(run))


def steps_made(folder: Path) -> int:
    """The last training step in a run's `log.jsonl`; 0 where there is none. A line that is being written is left out."""
    try:
        with (folder / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - TAIL))
            lines = log.read().splitlines()
    except FileNotFoundError:
        return 0
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if EVERY_STEP in entry["metrics"]:
            return int(entry["step"])
    return 0


def _score(run: Run) -> str:
    for suite, measures in run.scores.items():
        for name, measured in measures.items():
            error = float("nan") if measured.se is None else measured.se
            told = name.removeprefix("resolved_rate").replace("_", " ").strip()
            return " ".join(filter(None, (suite, told, with_error(measured.mean, error))))
    return ""

"""The record of a run: `run.json` in its folder.

Invariants:
- it's replaced whole, so that a reader never sees half of one;
- its process holds a lock in the run's folder for as long as it works there, and takes the lock's file away at the end, so a
  `running` record that nobody holds the lock of is of a process that was killed.
"""

import fcntl
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, ValidationError

RECORD = "run.json"
LOCK = ".running"
MAX_ERROR = 1000
"""Characters kept of the error that ended a run."""


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure of a suite at the end of a run."""

    mean: float
    se: float | None
    """Standard error of the mean over tasks; None for a single task."""
    n: int
    """Tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, as far as it has come."""

    folder: Path
    name: str
    """Of the experiment."""
    kind: str
    """Class of its root, `Campaign` or `Evaluation`."""
    run_digest: str
    """The same for two runs of the same work; see `run_digest_of`."""
    study_digest: str
    """The same for one study on every site and with every seed."""
    seed: int
    site: str | None
    experiment: str
    """The file that it was loaded from; empty for one that was built in Python."""
    smoke: bool = False
    status: Status = Status.RUNNING
    pid: int = field(default_factory=os.getpid)
    """Its process."""
    started: float = field(default_factory=time.time)
    """Unix time."""
    seconds: float = 0.0
    """How long it has run, all times together that came to an end in order."""
    resumed: int = 0
    """How often it was gone on with after an interruption."""
    mixed: bool = False
    """Whether it went on as another experiment than it began as; its run digest is then its own."""
    tracking_id: str | None = None
    """The run's id in the tracking store."""
    steps: int | None = None
    """Training steps that it is to make; None for an evaluation."""
    scores: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    """Suite to measure to its value for the last policy."""
    checkpoint: str | None = None
    """Folder of the newest weights (`policy/`, `critic/`, as far as they are kept), within the run's."""
    error: str | None = None
    """What ended it, where it failed."""

    @property
    def identity(self) -> dict[str, str]:
        """What the files of its trials say whose they are; `started` is the same after the run was renamed, or went on as another
        experiment."""
        return {
            "run": self.folder.name,
            "started": str(self.started),
            "run_digest": self.run_digest,
            "seed": str(self.seed),
        }

    @property
    def weights(self) -> Path | None:
        """Folder of the newest weights where it's still there."""
        if self.checkpoint is None or not (self.folder / self.checkpoint).is_dir():
            return None
        return self.folder / self.checkpoint

    def save(self) -> Self:
        """Writes the record into its folder."""
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        draft = self.folder / f".{RECORD}"
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.folder / RECORD)
        return self

    def ended(self, status: Status, seconds: float, error: str | None = None) -> Self:
        """The record of a run that ends now, `seconds` after it began or was gone on with."""
        return replace(self, status=status, error=error and error[:MAX_ERROR], seconds=round(self.seconds + seconds, 3))


_ADAPTER = TypeAdapter(Run)


@contextmanager
def alive(folder: Path) -> Iterator[None]:
    """Holds the lock of a run's folder: what its process does for as long as it works there. Raises `ValueError` where another
    process does."""
    with (folder / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat())  # else its holder took the file away just now
        except (BlockingIOError, FileNotFoundError):
            ours = False
        if not ours:
            raise ValueError(f"another process works on {folder}; wait for it, or stop it: t1x runs stop {folder}")
        try:
            yield
        finally:
            (folder / LOCK).unlink(missing_ok=True)


def read_run(folder: Path) -> Run:
    """The record of a run's folder. Raises `ValueError` where it can't be read."""
    run = stored_run(folder)
    if run.status is not Status.RUNNING or is_locked(folder):
        return run
    again = stored_run(folder)  # it may have ended in order since
    return replace(again, status=Status.KILLED) if again.status is Status.RUNNING else again


def stored_run(folder: Path) -> Run:
    """The record as it stands there, of a killed process `running`. Raises `ValueError` where it can't be read."""
    file = folder / RECORD
    try:
        return _ADAPTER.validate_python({**json.loads(file.read_text(encoding="utf-8")), "folder": folder})
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{file} isn't the record of a run: {_reason(error)}") from error


def runs(folder: str | Path = "runs") -> list[Run]:
    """The runs of a runs folder, the newest first; warns of a record that can't be read and leaves it out."""
    found = []
    for file in Path(folder).glob(f"*/{RECORD}"):
        try:
            found.append(read_run(file.parent))
        except ValueError as error:
            warnings.warn(f"{error}; left out", stacklevel=2)
    return sorted(found, key=lambda run: (run.started, run.folder.name), reverse=True)


def latest(found: Iterable[Run]) -> dict[str, Run]:
    """By run digest: of runs that are ordered as `runs` gives them, the newest that finished, or else the newest."""
    chosen: dict[str, Run] = {}
    for run in found:
        known = chosen.setdefault(run.run_digest, run)
        if run.status is Status.FINISHED and known.status is not Status.FINISHED:
            chosen[run.run_digest] = run
    return chosen


def find_finished(folder: str | Path, run_digest: str) -> Run | None:
    """The newest finished run of this digest, or None."""
    return next((run for run in runs(folder) if run.status is Status.FINISHED and run.run_digest == run_digest), None)


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def is_locked(folder: Path) -> bool:
    """Whether a process works in a run's folder."""
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False

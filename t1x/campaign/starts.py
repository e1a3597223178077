"""The campaigns that others start from: each is run once and its weights are kept.

Invariants:
- a campaign of one run digest is run once in a runs folder, however many need it and however many processes they are;
- only weights of a run that finished are used, so an interrupted one leaves nothing to go on with.
"""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from t1x.campaign.identity import Prerequisite
from t1x.campaign.record import Run, Status, runs

LOCKS = ".starts"
"""Folder of the locks, in the runs folder."""

Say = Callable[[str], None]
RunFirst = Callable[[Prerequisite], Run]


def provide(prerequisites: Sequence[Prerequisite], run: RunFirst, say: Say) -> dict[str, Path]:
    """The weights' folder of each campaign, by the name that the experiment has for it; runs those that haven't been. Raises what
    `run` does."""
    return {each.experiment: _provide(each, run, say) for each in prerequisites}


def everything(prerequisites: Sequence[Prerequisite]) -> Iterator[Prerequisite]:
    """They and those that they start from themselves."""
    for each in prerequisites:
        yield each
        yield from everything(each.prerequisites)


def _provide(needed: Prerequisite, run: RunFirst, say: Say) -> Path:
    def waiting() -> None:
        say(f"start {needed.experiment}: another process runs it; waiting")

    with _alone(needed.campaign.runs / LOCKS / f"{needed.run_digest}.lock", waiting):
        weights = _kept(needed)
        if weights is not None:
            say(f"start {needed.experiment}: using {weights}")
            return weights
        say(f"start {needed.experiment}: run first, once")
        weights = run(needed).weights
        assert weights is not None, "a campaign that finished has kept its weights"
        return weights


def _kept(needed: Prerequisite) -> Path | None:
    """The newest weights of a finished run that are still there."""
    found = (each for each in runs(needed.campaign.runs) if each.run_digest == needed.run_digest)
    return next((each.weights for each in found if each.status is Status.FINISHED and each.weights), None)


@contextmanager
def _alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds a lock file; calls `waiting` once where someone else does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        message = f"runs can't be kept in {path.parent.parent}: {error.strerror}; set Experiment.runs to a folder you may write"
        raise ValueError(message) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield

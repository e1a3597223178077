"""The stored trials of a run, told from those of any other run by the run's record."""

from collections.abc import Callable

from t1x.campaign.record import Run
from t1x.trajectory.storage_folder import BatchFile
from t1x.trajectory.storage_search import find_trial, stored_batches


def trials_of(run: Run, step: str | None = None, suite: str | None = None) -> list[BatchFile]:
    """The files of its batches or of the passes over a suite; see `stored_batches`."""
    return stored_batches(run.folder, run.identity["started"], step, suite)


def trial_of(run: Run, trial: str, step: str | None, suite: str | None, warn: Callable[[str], None]) -> BatchFile:
    """The file that has the trial; see `find_trial`."""
    return find_trial(run.folder, run.identity["started"], trial, step, suite, warn)

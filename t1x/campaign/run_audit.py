"""The audit of a run's stored trials, batch by batch."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from t1x.campaign.record import Run
from t1x.campaign.run_trials import trials_of
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.storage_folder import BatchFile
from t1x.trajectory.storage_reader import read_header, read_trials


@dataclass(frozen=True, slots=True)
class BatchAudit:
    """A file that is to be audited."""

    file: BatchFile
    trials: int
    routing: bool
    """Whether routing was kept; else it can't be audited."""

    def audits(self, droppable: int | None) -> Iterator[Audit]:
        """That of each trial, one at a time; one that was invalid has no trajectory, and nothing to audit. `droppable` is as in
        `audit`."""
        for trial in read_trials(self.file.path):
            captured = trial.turns, trial.trajectories, trial.id
            yield audit(*captured, droppable=droppable) if trial.ended_by.counts else Audit()


def batch_audits(run: Run, step: str | None = None, suite: str | None = None) -> list[BatchAudit]:
    """Those of a run's stored batches, or of the passes over a suite, but of files that are removed meanwhile; see `trials_of`."""
    found = []
    for file in trials_of(run, step, suite):
        with suppress(FileNotFoundError):
            header = read_header(file.path)
            found.append(BatchAudit(file, header.trials, header.routing))
    return found

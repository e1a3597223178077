"""The audit of a run's stored trials, batch by batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t1x.harness.records import EndedBy
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.storage_folder import BatchFile
from t1x.trajectory.storage_reader import read_header, read_trials
from t1x.trajectory.storage_search import stored_batches


@dataclass(frozen=True, slots=True)
class BatchAudit:
    """A file that is to be audited."""

    file: BatchFile
    trials: int
    routing: bool
    """Whether routing was kept; else it can't be audited."""

    def audits(self) -> Iterator[Audit]:
        """That of each trial, one at a time; one that was invalid has no trajectory, and nothing to audit."""
        for trial in read_trials(self.file.path):
            counts = EndedBy(trial.ended_by).counts
            yield audit(trial.turns, trial.trajectories, trial.id) if counts else Audit()


def batch_audits(run: Path, step: str | None = None) -> list[BatchAudit]:
    """Those of a run's stored batches, in order; of one alone where a step is given. Raises `ValueError` where there is none."""
    found = [(file, read_header(file.path)) for file in stored_batches(run, step)]
    return [BatchAudit(file, header.trials, header.routing) for file, header in found]

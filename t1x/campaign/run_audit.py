"""The audit of a run's stored trials, batch by batch."""

from collections.abc import Iterator
from dataclasses import dataclass

from t1x.campaign.record import Run
from t1x.harness.records import EndedBy
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.storage import read_header, read_trials
from t1x.trajectory.storage_folder import FOLDER, BatchFile, batch_files


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A file that is to be audited."""

    file: BatchFile
    trials: int
    routing: bool
    """Whether routing was kept; else it can't be audited."""

    @property
    def name(self) -> str:
        """Purpose and step."""
        return f"{self.file.purpose} {self.file.step}"

    def audits(self) -> Iterator[Audit]:
        """That of each trial, one at a time; one that was invalid has no trajectory, and nothing to audit."""
        for trial in read_trials(self.file.path):
            counts = EndedBy(trial.ended_by).counts
            yield audit(trial.turns, trial.trajectories, trial.id) if counts else Audit()


def stored_batches(run: Run, step: int | None = None) -> list[StoredBatch]:
    """The stored batches of a run, in order; of training step `step` only where it's given. Raises `ValueError` where there are
    none."""
    files = batch_files(run.folder)
    found = [file for file in files if step is None or (file.purpose == "train" and file.step == step)]
    if not found:
        has = ", ".join(f"{file.purpose} {file.step}" for file in files)
        which = f"{run.folder / FOLDER} holds no trials" + (f" of training step {step}" if step is not None else "")
        raise ValueError(f"{which}; {f'it has those of {has}' if has else '`StoredTrajectories.every` says which are kept'}")
    headers = [read_header(file.path) for file in found]
    return [StoredBatch(file, header.trials, header.routing) for file, header in zip(found, headers, strict=True)]

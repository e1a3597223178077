"""The trials of a run on disk: `trajectories/<purpose>-<step>.parquet`, those of batches written while training goes on.

Invariants:
- the file of a batch or a pass over a suite is whole, or not there;
- a batch that a checkpoint counts as rolled, and a pass whose score is known, was written before, as far as it could be;
- what can't be written is said and left out: a run doesn't end for it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from t1x.campaign.stored_trajectories import StoredTrajectories
from t1x.rollout.records import Trial
from t1x.trajectory.storage_folder import FOLDER, BatchFile, batch_file, batch_files, batch_path
from t1x.trajectory.storage_writer import TrialWriter, remove_interrupted
from t1x.trajectory.stored import StoredTrial


class TrajectoryStore:
    """The stored trials of one run, of which one process at a time is in charge."""

    def __init__(self, run: Path, spec: StoredTrajectories, identity: Mapping[str, str], say: Callable[[str], None]) -> None:
        """`run` is the run's folder, where what a killed process left unfinished is removed; `identity` goes into every file."""
        self.run = run
        """Its folder."""
        self._spec, self._identity, self._say = spec, dict(identity), say
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="trajectories")
        self._write: Future[str] | None = None
        try:
            remove_interrupted(run / FOLDER)
        except OSError as error:
            say(f"warning: what was left half written in {run / FOLDER} can't be removed: {error}")

    def store(self, purpose: str, step: int, trials: Sequence[Trial]) -> None:
        """Writes the trials of a batch where it's due, and removes what isn't kept any more. Returns at once, unless an earlier
        write is under way."""
        if self._spec.due(step - (purpose == "train")):
            self._begin(purpose, step, trials)

    def store_now(self, purpose: str, step: int, trials: Sequence[Trial]) -> bool:
        """Writes the trials of a batch, whether or not it's due. They are on disk when it returns, unless it says False."""
        self._begin(purpose, step, trials)
        return self.finish()

    def store_pass(self, purpose: str, step: int | None, trials: Sequence[Trial]) -> None:
        """Writes the trials of a pass over a suite, unless none is kept; step as in `Score`. They are on disk when it returns."""
        if self._spec.evaluations:
            self._begin(purpose, step, trials)
            self.finish()

    def _begin(self, purpose: str, step: int | None, trials: Sequence[Trial]) -> None:
        self.finish()
        self._write = self._writer.submit(self._save, purpose, step, trials)

    def finish(self) -> bool:
        """Waits for a write that is under way; says what went wrong with it. Returns whether nothing did."""
        write, self._write = self._write, None
        wrong = "" if write is None else write.result()
        if wrong:
            self._say(wrong)
        return not wrong

    def go_on(self, warmups: int, rolled: int, evaluated: int | None) -> None:
        """Removes what is of a past that the run turns away from, where it goes on from so many batches of the warm-up, batches of
        training up to step `rolled`, and passes over suites up to the policy of step `evaluated` (None: the untrained one)."""
        last = {"warmup": warmups - 1, "train": rolled}
        for file in batch_files(self.run):
            step = -1 if file.step is None else file.step
            if step > last.get(file.purpose, -1 if evaluated is None else evaluated):
                file.path.unlink()

    def close(self) -> None:
        """Waits, says, and ends the thread."""
        try:
            self.finish()
        finally:
            self._writer.shutdown()

    def _save(self, purpose: str, step: int | None, trials: Sequence[Trial]) -> str:
        """What went wrong; empty where nothing did."""
        file = batch_file(batch_path(self.run, purpose, step))
        assert file is not None, f"{purpose} is a batch's purpose or a pass's"
        try:
            with TrialWriter(file.path, {**self._identity, **file.identity}, self._spec.routing) as writer:
                for trial in trials:
                    writer.add(_stored(trial))
            self._prune()
        except (OSError, MemoryError) as error:
            return f"warning: the trials of {file.name} aren't kept in {file.path.parent}: {error}; the run goes on without"
        except ValueError as error:  # not the disk's doing: a trial is too large, or what its turns captured disagrees
            return f"warning: the trials of {file.name} aren't kept: {error}; the run goes on without"
        return ""

    def _prune(self) -> None:
        files = [(file, file.path.stat().st_size) for file in batch_files(self.run)]
        limit = self._spec.gigabytes * 1e9
        taken = _keep_newest([each for each in files if each[0].suite], limit * self._spec.evaluations, None)
        _keep_newest([each for each in files if not each[0].suite], limit - taken, self._spec.last)


def _keep_newest(files: Sequence[tuple[BatchFile, int]], limit: float, most: int | None) -> int:
    """Removes the oldest files until at most so many are left and their sizes are within the limit; the newest stays. Returns the
    bytes that are left."""
    taken = kept = 0
    for file, size in reversed(files):
        if kept and (kept == most or taken + size > limit):
            file.path.unlink()
            limit = 0  # nor is one that is older
        else:
            taken, kept = taken + size, kept + 1
    return taken


def _stored(trial: Trial) -> StoredTrial:
    return StoredTrial(
        id=trial.id,
        task=trial.task.name,
        ended_by=trial.ended_by,
        reward=trial.reward,
        resolved=None if trial.report is None else trial.report.resolved,
        turns=trial.turns,
        trajectories=trial.trajectories,
    )

"""The trials of a run on disk: `trajectories/<purpose>-<step>.parquet`, written while training goes on.

Invariants:
- the file of a batch is whole, or not there;
- a batch that a checkpoint counts as rolled was written before it, as far as it could be;
- what can't be written is said and left out: a run doesn't end for it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from t1x.campaign.stored_trajectories import StoredTrajectories
from t1x.rollout.records import Trial
from t1x.trajectory.storage_folder import FOLDER, batch_files, batch_path
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

    def store(self, purpose: str, step: int, trials: Sequence[Trial], always: bool = False) -> None:
        """Writes the trials of a batch where it's due, or `always`, and removes what isn't kept any more. Returns at once, unless
        an earlier write is under way."""
        if always or self._spec.due(step - (purpose == "train")):
            self.finish()
            self._write = self._writer.submit(self._save, purpose, step, trials)

    def finish(self) -> None:
        """Waits for a write that is under way; says what went wrong with it."""
        write, self._write = self._write, None
        if write is not None and (wrong := write.result()):
            self._say(wrong)

    def go_on(self, warmups: int, rolled: int) -> None:
        """Removes batches of a past that the run turns away from, where it goes on from so many batches of the warm-up and, up to
        this step, of training."""
        for file in batch_files(self.run):
            if file.step > rolled if file.purpose == "train" else file.step >= warmups:
                file.path.unlink()

    def close(self) -> None:
        """Waits, says, and ends the thread."""
        try:
            self.finish()
        finally:
            self._writer.shutdown()

    def _save(self, purpose: str, step: int, trials: Sequence[Trial]) -> str:
        """What went wrong; empty where nothing did."""
        path = batch_path(self.run, purpose, step)
        try:
            with TrialWriter(path, {**self._identity, "purpose": purpose, "step": str(step)}, self._spec.routing) as writer:
                for trial in trials:
                    writer.add(_stored(trial))
            self._prune()
        except (OSError, ValueError, MemoryError) as error:
            return f"warning: the trials of {purpose} batch {step} aren't kept in {path.parent}: {error}; the run goes on without"
        return ""

    def _prune(self) -> None:
        *older, newest = [(file.path, file.path.stat().st_size) for file in batch_files(self.run)]
        left, taken = (self._spec.last or len(older) + 1) - 1, newest[1]
        for path, size in reversed(older):
            left, taken = left - 1, taken + size
            if left < 0 or taken > self._spec.gigabytes * 1e9:
                path.unlink()


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

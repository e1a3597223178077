"""Finding the run to go on with.

Invariants:
- a run goes on only where it stopped: one that has finished or that a process works on is left alone;
- it goes on as the same experiment, unless the user has seen what changed and allows it.
"""

from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.experiment import Experiment
from t1x.campaign.record import Run, Status, runs
from t1x.config import Role, load
from t1x.config.diff import Difference, diff
from t1x.config.digest import digest
from t1x.config.problem import ConfigError


@dataclass(frozen=True, slots=True)
class Resume:
    """How a run that was interrupted is gone on with."""

    allow_changes: bool = False
    """Whether the experiment may differ from the one that was interrupted."""


@dataclass(frozen=True, slots=True)
class Found:
    """The run to go on with."""

    run: Run
    changes: tuple[str, ...] = ()
    """What differs from the experiment that was interrupted, a line each."""

    @property
    def digest(self) -> str:
        """The run's digest from now on. A mixture of two experiments has one of its own: it's the same work as no other run."""
        return digest([self.run.run_digest, *self.changes]) if self.changes else self.run.run_digest


def interrupted(folder: Path, run_digest: str) -> Run | None:
    """The newest run of this digest in a runs folder where it stopped before its end; None where it didn't, or there is none."""
    newest = next((run for run in runs(folder) if run.run_digest == run_digest), None)
    return newest if newest is not None and newest.status in (Status.KILLED, Status.FAILED) else None


def find(experiment: Experiment, run_digest: str, resume: Resume) -> Found | None:
    """The newest run of this experiment (its name, its seed) in its runs folder; None where there is none. Of the same digest it
    may have finished; another one is given only where it was interrupted, or, with leave to change it, has finished. Raises
    `ValueError` where a process works on it, or where the experiment has changed since and that isn't allowed."""
    mine = [run for run in runs(experiment.runs) if run.name == experiment.name and run.seed == experiment.seed]
    same = [run for run in mine if run.run_digest == run_digest]
    if same:
        return _free(Found(same[0]))
    ended = (Status.KILLED, Status.FAILED, *([Status.FINISHED] if resume.allow_changes else []))
    others = [run for run in mine if run.status in ended]
    if not others:
        return None
    changed = Found(others[0], _changes(others[0], experiment))
    if changed.changes and not resume.allow_changes:
        raise ValueError(
            f"{changed.run.folder} can't be gone on with as it was, since its experiment has changed:\n"
            + "".join(f"  {line}\n" for line in changed.changes)
            + "Run it with --allow-changes to go on with these changes, or without --resume to begin anew."
        )
    return _free(changed)


def _free(found: Found) -> Found:
    if found.run.status is Status.RUNNING:
        raise ValueError(
            f"process {found.run.pid} works on {found.run.folder}; wait for it, or stop it: t1x runs stop {found.run.folder}"
        )
    return found


def _changes(run: Run, experiment: Experiment) -> tuple[str, ...]:
    """What differs from the experiment that a run of another digest was the last time, placement aside."""
    file = run.folder / "config.gin"
    try:
        before = load(file, site=None)
    except (ConfigError, FileNotFoundError) as error:
        raise ValueError(f"{file} can't be read, so what changed can't be told: {error}") from error
    differences = [each for each in diff((before.root, {}), (experiment, {})) if each.role is not Role.PLACEMENT]
    if not differences and not run.mixed:
        return ("a campaign that it starts from has changed",)
    return tuple(_told(each) for each in differences)


def _told(difference: Difference) -> str:
    """`algorithm.lam: 1.0 → 0.95`."""
    sides = ["nothing" if side is None else repr(side.value) for side in (difference.left, difference.right)]
    return f"{difference.path or 'the root'}: {' → '.join(sides)}"

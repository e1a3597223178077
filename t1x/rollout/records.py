"""One attempt at one task, from lease to reward."""

from dataclasses import dataclass, field

from t1x.grading.report import VerifierReport
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one attempt. Written once."""

    id: str
    task: Task
    turns: tuple[Turn, ...]
    ended_by: EndedBy
    report: VerifierReport | None
    reward: float | None
    """None unless `ended_by.counts` and it was graded."""
    trajectories: tuple[Trajectory, ...]
    """What training consumes; empty unless `ended_by.counts`."""
    transcript: tuple[tuple[str, str], ...]
    """(role, text) in order, for readers."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds by phase: `wait` (for a place, before its sandbox is made), `create`, `agent`, `verify`, `destroy`."""
    error: str = ""
    """What went wrong, for a reader, where the trial is invalid."""


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What came of one rollout: every launched trial exactly once."""

    admitted: tuple[Trial, ...]
    """What training consumes, in the order of launching."""
    others: tuple[Trial, ...]
    """Cancelled and invalid ones, and those that completed when the batch was already full; in the order of launching."""

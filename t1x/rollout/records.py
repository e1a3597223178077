"""One attempt at one task, from lease to reward."""

from dataclasses import dataclass, field
from enum import StrEnum

from t1x.grading.report import VerifierReport
from t1x.tasks.task import Task
from t1x.trajectory.records import Trajectory, Turn


class EndedBy(StrEnum):
    """Why a trial ended; decides what follows."""

    DONE = "done"
    TURN_LIMIT = "turn_limit"
    CONTEXT = "context"
    AGENT_DEADLINE = "agent_deadline"
    SANDBOX_ERROR = "sandbox_error"
    ENGINE_ERROR = "engine_error"
    VERIFIER_ERROR = "verifier_error"
    CANCELLED = "cancelled"

    @property
    def counts(self) -> bool:
        """Whether the verifier runs and the reward counts. The others are invalid or cancelled, never reward 0."""
        return self in (EndedBy.DONE, EndedBy.TURN_LIMIT, EndedBy.CONTEXT, EndedBy.AGENT_DEADLINE)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one attempt. Written once."""

    id: str
    task: Task
    turns: tuple[Turn, ...]
    ended_by: EndedBy
    report: VerifierReport | None
    reward: float | None
    """None unless `ended_by.counts` and the report is sound."""
    trajectories: tuple[Trajectory, ...]
    """What training consumes; empty unless there is a reward."""
    transcript: tuple[tuple[str, str], ...]
    """(role, text) in order, for readers."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds by phase: `create`, `agent`, `verify`, `destroy`."""
    error: str = ""
    """What went wrong, for a reader, where the trial is invalid."""

"""A trial as it is kept on disk: what its turns captured and what was made of them, so that both can be audited and looked at."""

from dataclasses import dataclass

from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """One trial of a rollout batch."""

    id: str
    task: str
    ended_by: EndedBy
    reward: float | None
    resolved: bool | None
    """What its verifier says; None where it wasn't verified."""
    turns: tuple[Turn, ...]
    trajectories: tuple[Trajectory, ...]
    """Empty for one that is invalid or sampled nothing: there is nothing to audit then."""

"""The auditor: does every stream say what its turns captured? Shares no code with the stitchers, and runs on every batch.

Two measures of token-in, token-out:
- own-turn fidelity: id, log-probability, routing row and version of every loss position equal what its own turn captured (what
  Eq. 11 certifies); a violation is a bug, never a matter of degree;
- context fidelity: the share of loss positions whose prefix in the stream is what the engine consumed when it sampled them.
"""

from collections.abc import Sequence

from t1x.trajectory.audit_record import Audit
from t1x.trajectory.audit_trial import TrialAudit
from t1x.trajectory.records import Trajectory, Turn

__all__ = ["Audit", "audit"]


def audit(turns: Sequence[Turn], trajectories: Sequence[Trajectory], trial: str = "", *, droppable: int | None = None) -> Audit:
    """Audits one trial, whose id the findings get. Turns are assigned to trajectories by the boundaries alone. `droppable` is how
    many ids of an answer its stitcher lets an edge drop, None where that isn't known: it decides between an edge and the same text
    in other ids."""
    return TrialAudit(turns, trajectories, trial, droppable).found()

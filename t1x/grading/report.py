"""What the held-out verifier found, assertion by assertion."""

from dataclasses import dataclass
from typing import Literal

Cause = Literal[
    "missing",
    "empty",
    "truncated",
    "unparsable",
    "bad_schema",
    "duplicate",
    "summary_mismatch",
    "test_set_mismatch",
    "not_regular_file",
    "timeout",
    "too_large",
    "crashed",
]


@dataclass(frozen=True, slots=True)
class VerifierReport:
    """The verifier's outcome for one trial. With a `cause` there is no trustworthy per-assertion record."""

    assertions: tuple[tuple[str, bool], ...]
    """(name, passed) of every assertion."""
    cause: Cause | None = None
    """Why the record is unusable; None where it is sound."""
    detail: str = ""
    """For a reader: what was found instead."""
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        """P of the report."""
        return sum(ok for _, ok in self.assertions)

    @property
    def total(self) -> int:
        """T of the report."""
        return len(self.assertions)

    @property
    def resolved(self) -> bool:
        """b: every assertion holds in the final state (the agent's own `done` plays no part)."""
        return self.cause is None and self.total > 0 and self.passed == self.total

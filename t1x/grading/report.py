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
    "tests_changed",
    "in_process",
    "bad_reward",
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
    outcome: bool | None = None
    """b where the judge itself attests it apart from the record; None where only the record tells."""
    expected: int | None = None
    """T as the pool knows it, whatever became of the record."""
    baseline: frozenset[str] | None = None
    """Names of the assertions that passed before the agent acted, as the pool knows them."""

    @property
    def passed(self) -> int:
        """P of the report."""
        return sum(ok for _, ok in self.assertions)

    @property
    def total(self) -> int:
        """T of the report."""
        return len(self.assertions)

    @property
    def trouble(self) -> str:
        """The cause and what was found, for a reader; empty where the record is sound."""
        return "" if self.cause is None else f"{self.cause}: {self.detail}"

    @property
    def terminal(self) -> bool | None:
        """b, the terminal outcome (the agent's own `done` plays no part): as the judge attests it, else whether every assertion of
        a sound record holds; None where nothing attests it."""
        if self.outcome is not None or self.cause is not None:
            return self.outcome
        return self.total > 0 and self.passed == self.total

    @property
    def resolved(self) -> bool:
        """Whether b is attested and 1."""
        return self.terminal is True


def unusable(cause: Cause, detail: str, outcome: bool | None = None) -> VerifierReport:
    """A report without a usable record; `outcome` is b where the judge attests it all the same."""
    return VerifierReport((), cause, detail, outcome=outcome)

"""Rewards: pure functions of a verifier's report and of what the trial took. Equation numbers are the T1 report's.

Invariants: what can't be paid is told by `objection`, never paid as 0; a report without a record is paid only where the judge
itself attests its outcome b.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from t1x.config import Component
from t1x.grading.report import VerifierReport
from t1x.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Spent:
    """What a trial took."""

    turns: int
    tokens: int
    """That the policy sampled, over all turns."""


class Reward(Component):
    """What a trial is worth."""

    @property
    def dense(self) -> bool:
        """Whether it needs a per-assertion record."""
        return False

    def task_objection(self, task: Task) -> str:
        """Why no trial of this task could be paid, and what to do; empty where nothing is known to be in the way. Asked of every
        task before a run begins."""
        return ""

    def objection(self, report: VerifierReport) -> str:
        """Why a trial with this report can't be paid and is invalid, which isn't worth 0; empty where it can."""
        return report.trouble

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        """The scalar reward of a report without objection."""
        raise NotImplementedError


def _unattested(report: VerifierReport) -> str:
    """The objection of a reward that pays b where there is no record."""
    return report.trouble if report.terminal is None else ""


class TestCountReward(Reward):
    """r = P / S: how many assertions pass, in units of S; an absolute count that isn't clamped (T1 report, Eq. 20)."""

    __test__: ClassVar[bool] = False
    """The name begins like a test's; pytest is told that it isn't one."""

    scale: float = Field(20.0, gt=0)
    """S: how many passing assertions are worth 1 (Eq. 20)."""
    fallback: Literal["scaled", "terminal"] = "scaled"
    """What a trial without a usable record is paid where the judge attests its outcome b: `terminal` b (report, section 5.2),
    `scaled` b·T/S, as the record of a solved task would have been. By `terminal` a broken report of a solved task with four
    assertions is worth five times a sound one."""
    exclude_baseline: bool = True
    """Whether P and T leave out the assertions that passed before the agent acted (the report counts them: False). Needs tasks that
    know theirs: the bundled ones, and those of a pool that `t1x tasks check` has checked."""

    @property
    def dense(self) -> bool:
        return True

    def task_objection(self, task: Task) -> str:
        if not self.exclude_baseline or task.baseline is not None:
            return ""
        return (
            "it leaves out assertions that pass before the agent acts, and which these are isn't known. `t1x tasks check` finds "
            "it out; or pay for them too (TestCountReward.exclude_baseline = False); or, where verifiers give only a reward, pay "
            "the outcome: @BinaryReward() as the reward, with FolderPool.per_assertion = False"
        )

    def objection(self, report: VerifierReport) -> str:
        if self.exclude_baseline and report.baseline is None:
            return "exclude_baseline is set, but which assertions of the task passed before the agent acted isn't known"
        if report.cause is None:
            return ""
        if self.fallback == "scaled" and report.terminal is not None and report.expected is None:
            # Also where b is 0: were only solved trials left out, the mean would be too low.
            return f"{report.trouble}; b·T/S isn't known either: the pool doesn't say how many assertions T there are"
        return _unattested(report)

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        before = report.baseline or frozenset() if self.exclude_baseline else frozenset()
        if report.cause is None:
            return sum(ok for name, ok in report.assertions if name not in before) / self.scale
        if self.fallback == "terminal":
            return float(report.resolved)
        assert report.expected is not None, "else it objects"
        return report.resolved * (report.expected - len(before)) / self.scale


class RatioReward(Reward):
    """r = max(b, 0.4·P/T), clamped to [0, max(1, b)]: the share of assertions that pass, and 1 only for all of them (T1 report,
    section 5.2, kept there for comparison). It counts what passed before the agent acted, as the report does; without a usable
    record P/T counts as 0, so that it pays b where the judge attests it."""

    coefficient: float = Field(0.4, gt=0, le=1)
    """What P/T is multiplied by (report, section 5.2: 0.4)."""

    @property
    def dense(self) -> bool:
        return True

    def objection(self, report: VerifierReport) -> str:
        return _unattested(report)

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        b = float(report.resolved)
        share = report.passed / report.total if report.cause is None and report.total else 0.0
        return min(max(b, self.coefficient * share), 1.0)  # max(1, b) is 1, and nothing here is below 0


class BinaryReward(Reward):
    """r = b: 1 where every assertion holds, else 0."""

    def objection(self, report: VerifierReport) -> str:
        return _unattested(report)

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return float(report.resolved)


class LengthPenalty(Reward):
    """r − c·length: another reward less a price for each turn or token. A variant that failed, here so that its failure can be
    shown: under it turns grew without bound, beyond 50 (T1 report, sections 5.4 and 6.3), and it doesn't mend a trial that is long
    because its agent forgot what it had done (section 9.2). Not clamped, so it may be negative."""

    reward: Reward
    """What is lessened."""
    coefficient: float = Field(gt=0)
    """c: what one turn or token costs (not stated in the report)."""
    unit: Literal["turns", "tokens"] = "turns"
    """What length is: turns, or the tokens that the policy sampled in all of them."""

    @property
    def dense(self) -> bool:
        return self.reward.dense

    def task_objection(self, task: Task) -> str:
        return self.reward.task_objection(task)

    def objection(self, report: VerifierReport) -> str:
        return self.reward.objection(report)

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        length = spent.turns if self.unit == "turns" else spent.tokens
        return self.reward(report, spent) - self.coefficient * length

"""Rewards: pure functions of a verifier's report and of what the trial took. Equation numbers are the T1 report's."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from t1x.config import Component
from t1x.grading.report import VerifierReport


@dataclass(frozen=True, slots=True)
class Spent:
    """What a trial took."""

    turns: int
    tokens: int
    """That the policy sampled, over all turns."""


class Reward(Component):
    """What a trial is worth."""

    dense: ClassVar[bool] = False
    """Whether it needs a per-assertion record."""

    def objection(self, report: VerifierReport) -> str:
        """Why a trial with this report can't be paid and is invalid, which isn't worth 0; empty where it can."""
        return f"{report.cause}: {report.detail}" if report.cause is not None else ""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        """The scalar reward of a report without objection."""
        raise NotImplementedError


class TestCountReward(Reward):
    """r = P / S: how many assertions pass, in units of S; an absolute count that isn't clamped (T1 report, Eq. 20)."""

    __test__: ClassVar[bool] = False
    """The name begins like a test's; pytest is told that it isn't one."""
    dense: ClassVar[bool] = True

    scale: float = Field(20.0, gt=0)
    """S: how many passing assertions are worth 1 (Eq. 20)."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return report.passed / self.scale


class BinaryReward(Reward):
    """r = b: 1 where every assertion holds, else 0."""

    def objection(self, report: VerifierReport) -> str:
        return super().objection(report) if report.terminal is None else ""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return 1.0 if report.resolved else 0.0

"""Rewards: pure functions of a verifier's report. Equation numbers are the T1 report's."""

from typing import ClassVar

from pydantic import Field

from t1x.config import Component
from t1x.grading.report import VerifierReport


class Reward(Component):
    """What a trial is worth."""

    dense: ClassVar[bool] = False
    """Whether it needs a per-assertion record."""

    def __call__(self, report: VerifierReport) -> float:
        """The scalar reward. Raises `ValueError` for a report that has a cause: such a trial is invalid, not worth 0."""
        raise NotImplementedError


class TestCountReward(Reward):
    """r = P / S: how many assertions pass, in units of S; an absolute count that isn't clamped (T1 report, Eq. 20)."""

    __test__: ClassVar[bool] = False
    """The name begins like a test's; pytest is told that it isn't one."""
    dense: ClassVar[bool] = True

    scale: float = Field(20.0, gt=0)
    """S: how many passing assertions are worth 1 (Eq. 20)."""

    def __call__(self, report: VerifierReport) -> float:
        _require_sound(report)
        return report.passed / self.scale


class BinaryReward(Reward):
    """r = b: 1 where every assertion holds, else 0."""

    def __call__(self, report: VerifierReport) -> float:
        _require_sound(report)
        return 1.0 if report.resolved else 0.0


def _require_sound(report: VerifierReport) -> None:
    if report.cause is not None:
        raise ValueError(f"an unusable report ({report.cause}: {report.detail}) has no reward; the trial is invalid")

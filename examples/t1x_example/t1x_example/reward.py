"""A reward is a pure function of a verifier's report."""

from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward


class Tolerant(Reward):
    """1 where no more assertions fail than are tolerated."""

    tolerated: int = 1
    """Assertions that may fail."""

    def __call__(self, report: VerifierReport) -> float:
        if report.cause is not None:
            raise ValueError(f"no reward without a usable report: {report.cause}")
        return float(report.total - report.passed <= self.tolerated)

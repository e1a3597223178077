"""A reward is a pure function of a verifier's report and of what the trial took."""

from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent


class Tolerant(Reward):
    """1 where no more assertions fail than are tolerated."""

    tolerated: int = 1
    """Assertions that may fail."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return float(report.total - report.passed <= self.tolerated)

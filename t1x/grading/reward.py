"""Rewards: pure functions of a verifier's report. Equation numbers are the T1 report's."""

from typing import ClassVar

from t1x.config import Component
from t1x.grading.report import VerifierReport


class Reward(Component):
    """What a trial is worth."""

    dense: ClassVar[bool] = False
    """Whether it needs a per-assertion record."""

    def __call__(self, report: VerifierReport) -> float:
        """The scalar reward. Raises `ValueError` for a report that has a cause: such a trial is invalid, not worth 0."""
        raise NotImplementedError

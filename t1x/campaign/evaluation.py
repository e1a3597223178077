"""The root of an evaluation without training."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from t1x.campaign.experiment import Experiment
from t1x.config import Role
from t1x.grading.reward import BinaryReward, Reward


class Evaluation(Experiment):
    """One policy on suites of held-out tasks."""

    reward: Reward = BinaryReward()
    total_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds for all suites together (report: 18,000), the start's own work not counted; no limit where None."""

    @model_validator(mode="after")
    def _has_a_suite(self) -> Self:
        if not any(suite.passes() for suite in self.suites):
            raise ValueError("nothing to evaluate on; set suites to at least one that runs tasks")
        return self

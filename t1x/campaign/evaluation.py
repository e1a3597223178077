"""The root of an evaluation without training."""

from typing import Annotated

from pydantic import Field

from t1x.campaign.experiment import Experiment
from t1x.config import Role
from t1x.grading.reward import BinaryReward, Reward


class Evaluation(Experiment):
    """One policy on suites of held-out tasks."""

    reward: Reward = BinaryReward()
    total_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds for all of it (report: 18,000); no limit where None."""

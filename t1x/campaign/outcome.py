"""What an experiment has come to."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from t1x.campaign.suite import Measure
from t1x.rollout.records import Trial


@dataclass(frozen=True, slots=True)
class Score:
    """One pass over a suite by one policy."""

    step: int | None
    """Training steps that the policy has had: 0 for the start, None for the untrained policy."""
    suite: str
    mode: str
    """The pass's; see `Pass`."""
    ending: str
    """Of its metrics' names where they are kept."""
    label: str
    """How a reader calls the mode."""
    measure: Measure
    """What the suite is judged by."""
    metrics: dict[str, float]
    """See `evaluation_metrics`."""

    @property
    def policy(self) -> str:
        """Its name for a reader."""
        return policy_name(self.step)

    @property
    def value(self) -> float:
        """The measure, 0 to 1."""
        return self.metrics[self.measure]

    @property
    def stderr(self) -> float:
        """Standard error of the value over tasks; NaN for a single task."""
        return self.metrics.get(f"{self.measure}_se", math.nan)


def policy_name(step: int | None) -> str:
    """`untrained`, `start` or `step <n>`; see `Score.step`."""
    return {None: "untrained", 0: "start"}.get(step, f"step {step}")


@dataclass(slots=True)
class Outcome:
    """What an experiment has come to so far; filled as it goes, so that an interrupted one can still be told of."""

    scores: list[Score] = field(default_factory=list)
    steps: dict[int, dict[str, float]] = field(default_factory=dict)
    """Each training step made, with its metrics."""
    transcripts: list[Trial] = field(default_factory=list)
    """Trials of the last evaluation or batch, whichever was later."""
    transcripts_of: str = ""
    """Which one that is, for a reader."""
    checkpoint: Path | None = None
    """The newest."""

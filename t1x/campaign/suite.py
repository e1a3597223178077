"""What a campaign is evaluated on."""

from typing import Annotated

from pydantic import Field

from t1x.config import Component, Role
from t1x.tasks.pool import Pool


class Suite(Component):
    """Held-out tasks and how often they are run."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    """Metrics are named `eval/<name>/…`."""
    pool: Pool
    """Where its tasks come from; the first ones are taken."""
    every: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Training steps between evaluations; 0 for none. The untrained policy, the start and the last step are always evaluated."""

    def due(self, step: int, last: int) -> bool:
        """Whether it is run after training step `step` of `last`; 0 is the start."""
        return step in (0, last) or bool(self.every and step % self.every == 0)


class PoolSuite(Suite):
    """One attempt at each task, with random streams of its own, so that evaluating never changes training."""

    greedy: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Tasks run at temperature 0; 0 leaves that out."""
    sampled: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Tasks run at temperature 1; 0 leaves that out."""

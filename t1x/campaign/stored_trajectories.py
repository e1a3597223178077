"""Which trials are kept on disk, and for how long."""

from typing import Annotated

from pydantic import Field

from t1x.config import Component, Role


class TrajectoryPolicy(Component):
    """Which trials are kept on disk."""


class StoredTrajectories(TrajectoryPolicy):
    """Which trials are kept in a run's folder `trajectories`, for `t1x audit`, `t1x gap` and `t1x trajectory`: of a batch those
    that make it and those that are invalid, of a pass over a suite all, with all that their turns captured. What is kept changes
    no result."""

    every: Annotated[int, Role.PLACEMENT, Field(ge=0)] = 1
    """Rollout batches, of the warm-up and of training alike, from one that is kept to the next; the first one always is. 0 keeps
    none."""
    last: Annotated[int | None, Role.PLACEMENT, Field(ge=1)] = None
    """Most batches that are kept, the newest; None for no such limit."""
    gigabytes: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 2.0
    """Disk that all of them may take, in 10⁹ bytes: the oldest go first, the newest batch stays whatever it takes."""
    evaluations: Annotated[float, Role.PLACEMENT, Field(ge=0, le=1)] = 0.25
    """Share of `gigabytes` that passes over suites may take: the oldest go first, the newest stays whatever it takes, and what they
    leave is the batches'. 0 keeps none."""
    routing: Annotated[bool, Role.PLACEMENT] = True
    """Whether the routed experts are kept: most of the size (some 340 of 350 bytes a token where 48 layers use 8 of 128 experts).
    Without them neither routing can be audited nor replay measured."""

    def due(self, index: int) -> bool:
        """Whether the batch of this index, from 0, is kept."""
        return bool(self.every) and index % self.every == 0

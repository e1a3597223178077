"""When checkpoints are written and which of them are kept."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from t1x.campaign.suite import Suite
from t1x.config import Component, Role

Count = Annotated[int, Role.PLACEMENT, Field(ge=0)]


class CheckpointPolicy(Component):
    """When checkpoints are written and which of them are kept."""


class Checkpointing(CheckpointPolicy):
    """When checkpoints are written and which of them are kept. A full one holds all that going on bit for bit needs; one of weights
    alone holds the networks that come out of the algorithm."""

    every: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """Training steps between full checkpoints, and critic warm-up batches alike. The start and the last step always have one."""
    last: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 2
    """Full ones that are kept, the newest; one alone leaves nothing to go on from where it's damaged."""
    weights_every: Count = 0
    """Training steps between checkpoints whose weights are never removed, as the start's aren't; 0 for none (report: 10)."""
    best: Annotated[str | None, Role.PLACEMENT] = None
    """Name of a suite: the weights of the step that did best on it are kept, of equal ones the earliest. Choose a validation suite,
    never held-out test tasks: what is chosen on them is no longer measured by them."""
    asynchronous: Annotated[bool, Role.PLACEMENT] = True
    """Written by a thread while training goes on, from a copy in memory."""

    @model_validator(mode="after")
    def _weights_come_from_full_ones(self) -> Self:
        if self.weights_every % self.every:
            raise ValueError(
                f"weights_every is {self.weights_every}, but a checkpoint is written every {self.every} steps; set it to "
                f"a multiple of that"
            )
        return self

    def judges(self, suites: Iterable[Suite]) -> bool:
        """Whether the suite that `best` names is among these, so that the step it's run on needs a checkpoint."""
        return any(suite.name == self.best for suite in suites)

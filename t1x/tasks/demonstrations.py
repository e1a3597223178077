"""Demonstrations for SFT, made from reference solutions, of the mixed quality that real demonstration data has."""

import numpy as np
from pydantic import Field

from t1x.config import Component
from t1x.tasks.task import Task


class Demonstrations(Component):
    """Which commands a demonstrator runs on a task."""

    seed: int = Field(0, ge=0)
    """Of the demonstrator's random streams."""

    def rng(self, index: int) -> np.random.Generator:
        """The random stream of the pool's task `index`."""
        return np.random.default_rng([self.seed, index])

    def commands(self, task: Task, rng: np.random.Generator) -> tuple[str, ...]:
        """One command a turn; the closing `done` is the harness's. Raises `ValueError` for a task without a reference solution."""
        raise NotImplementedError


class MixedDemonstrations(Demonstrations):
    """The reference solution with sub-goals left out and careless mistakes; with both probabilities 0 it is the clean reference."""

    skip_probability: float = Field(0.4, ge=0.0, le=1.0)
    """Of leaving out a sub-goal, for each but the first."""
    careless_probability: float = Field(0.3, ge=0.0, le=1.0)
    """Of doing a sub-goal in its careless way, for each that has one."""

    def commands(self, task: Task, rng: np.random.Generator) -> tuple[str, ...]:
        if not task.solution:
            raise ValueError(
                f"task {task.name} has no reference solution to demonstrate; choose a pool whose tasks have solution/solve.sh"
            )
        chosen: list[str] = []
        for position, sub_goal in enumerate(task.solution):
            skip, careless = rng.random(2)
            if position == 0 or skip >= self.skip_probability:
                chosen += sub_goal.careless if sub_goal.careless and careless < self.careless_probability else sub_goal.commands
        return tuple(chosen)

"""A pool of tasks, and the order in which a campaign walks through it."""

from typing import Protocol

import numpy as np

from t1x.config import Component
from t1x.tasks.task import Task


class TaskPool(Protocol):
    """A sequence of tasks in the pool's stored (quality) order; the same index always gives the same task."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Task: ...


class Pool(Component):
    """Where tasks come from."""

    per_assertion: bool = True
    """Whether its verifiers report every assertion (a binary-only pool can't carry a dense reward)."""

    def build(self) -> TaskPool:
        """Opens the pool. Raises `ValueError` naming the file where a task is malformed."""
        raise NotImplementedError


def epoch_order(size: int, seed: int, epoch: int) -> np.ndarray:
    """The permutation `[size]` int64 of an epoch (report, section 5.4): the same for the same seed and epoch."""
    return np.random.default_rng([seed, epoch]).permutation(size)

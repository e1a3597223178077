"""Which tasks come next: an endless walk through a pool, each epoch in a seeded order of its own."""

from t1x.tasks.pool import TaskPool, epoch_order
from t1x.tasks.task import Task


class PoolCursor:
    """Every task once an epoch; an epoch's end may fall inside a batch."""

    def __init__(self, pool: TaskPool, seed: int) -> None:
        if not len(pool):
            raise ValueError("the training pool is empty")
        self._pool, self._seed = pool, seed
        self.taken = 0
        """Tasks taken so far."""

    def take(self, count: int) -> list[Task]:
        """The next `count` tasks."""
        tasks: list[Task] = []
        for position in range(self.taken, self.taken + count):
            epoch, index = divmod(position, len(self._pool))
            if index == 0 or not tasks:
                order = epoch_order(len(self._pool), self._seed, epoch)
            tasks.append(self._pool[int(order[index])])
        self.taken += count
        return tasks

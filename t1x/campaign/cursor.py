"""Which tasks come next: an endless walk through a pool, each epoch in a seeded order of its own."""

from collections.abc import Iterable
from typing import Any

from t1x.tasks.pool import epoch_order


class PoolCursor:
    """Indices of a pool of `size` tasks, every one once an epoch; an epoch's end may fall inside a batch."""

    def __init__(self, size: int, seed: int) -> None:
        if not size:
            raise ValueError("the training pool has no task; give Campaign.pool a larger one")
        self._size, self._seed = size, seed
        self.taken = 0
        """Steps of the walk so far; what was given back and taken again counts once."""
        self._returned: list[int] = []

    def take(self, count: int) -> list[int]:
        """The next `count` tasks: first what was given back, then on with the walk."""
        again, self._returned = self._returned[:count], self._returned[count:]
        indices = list(again)
        for position in range(self.taken, self.taken + count - len(again)):
            epoch, index = divmod(position, self._size)
            if index == 0 or len(indices) == len(again):
                order = epoch_order(self._size, self._seed, epoch)
            indices.append(int(order[index]))
        self.taken += count - len(again)
        return indices

    def give_back(self, indices: Iterable[int]) -> None:
        """These come first next, in this order, before others that were given back."""
        self._returned = [*indices, *self._returned]

    def state(self) -> dict[str, Any]:
        """Where the walk stands."""
        return {"taken": self.taken, "returned": list(self._returned)}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from there; tasks that a smaller pool doesn't have any more aren't given again."""
        self.taken, self._returned = state["taken"], [index for index in state["returned"] if index < self._size]

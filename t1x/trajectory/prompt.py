"""Growing arrays: the token ids of a prompt that gets longer every turn, and the streams that follow it.

Invariant: what was appended is never rewritten, so a view that was handed out stays what it was.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingArray:
    """Rows of one shape and type, appended in amortised constant time (the capacity doubles)."""

    def __init__(self, dtype: npt.DTypeLike, row: tuple[int, ...] = (), capacity: int = 256) -> None:
        self._rows: npt.NDArray[Any] = np.empty((capacity, *row), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, rows: npt.ArrayLike) -> None:
        """Appends `[n, *row]`."""
        new = np.asarray(rows, self._rows.dtype)
        needed = self._length + len(new)
        if needed > len(self._rows):
            grown = np.empty((max(needed, 2 * len(self._rows)), *self._rows.shape[1:]), self._rows.dtype)
            grown[: self._length] = self._rows[: self._length]
            self._rows = grown
        self._rows[self._length : needed] = new
        self._length = needed

    def view(self) -> npt.NDArray[Any]:
        """All rows so far, read-only and without a copy."""
        rows = self._rows[: self._length]
        rows.flags.writeable = False
        return rows


class PromptBuffer(GrowingArray):
    """Token ids `[n]` int32: the harness's source of truth for what the engine is given."""

    def __init__(self, ids: npt.ArrayLike = ()) -> None:
        super().__init__(np.int32)
        self.extend(ids)

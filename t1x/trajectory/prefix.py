"""How far two sequences agree."""

from typing import Any

import numpy.typing as npt


def common_prefix(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> int:
    """How many first elements of two one-dimensional arrays are the same. Looks no more than twice as far as that."""
    n, seen, step = min(len(one), len(other)), 0, 64
    while seen < n:
        until = min(n, seen + step)
        differs = one[seen:until] != other[seen:until]
        if differs.any():
            return seen + int(differs.argmax())
        seen, step = until, 2 * step
    return n

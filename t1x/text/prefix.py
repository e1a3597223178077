"""What two sequences begin with alike."""

from typing import Any

import numpy.typing as npt


def common_text(a: str, b: str) -> int:
    """How many characters two texts have in common at their beginning; by halves, since texts are compared fast as wholes."""
    same, most = 0, min(len(a), len(b))
    while same < most:
        middle = (same + most + 1) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


def common_ids(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> int:
    """How many first elements of two one-dimensional arrays are the same. Looks no more than twice as far as that."""
    same, most, step = 0, min(len(a), len(b)), 64
    while same < most:
        until = min(most, same + step)
        differs = a[same:until] != b[same:until]
        if differs.any():
            return same + int(differs.argmax())
        same, step = until, 2 * step
    return most

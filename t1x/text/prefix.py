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
    """How many first elements of two one-dimensional arrays are the same. By steps that grow, so that little is compared where they
    differ early, and where they don't it costs what comparing them at once does."""
    same, most, step = 0, min(len(a), len(b)), 4096
    while same < most:
        until = min(most, same + step)
        differs = a[same:until] != b[same:until]
        at = int(differs.argmax())
        if differs[at]:
            return same + at
        same, step = until, 8 * step
    return most

"""How much disk a run takes."""

import os
from collections.abc import Iterator
from pathlib import Path


def disk_use(folder: Path) -> int:
    """Bytes of all files below a folder, links not followed; 0 where there is no such folder. What vanishes meanwhile isn't
    counted."""
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield (Path(place) / name).lstat().st_size
            except FileNotFoundError:
                continue

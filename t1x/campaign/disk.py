"""How much disk a run takes."""

import os
from collections.abc import Iterator
from pathlib import Path

OTHER = "other"
"""The part of the files that lie in the run's folder itself."""


def disk_use(folder: Path) -> int:
    """Bytes of all files below a folder, links not followed; 0 where there is no such folder. What vanishes meanwhile isn't
    counted."""
    return sum(size for _, size in _sizes(folder))


def disk_parts(folder: Path) -> dict[str, int]:
    """Bytes by part of a run (`checkpoints`, `report`, …: the folders in its own, and `other`), the largest first."""
    parts: dict[str, int] = {}
    for path, size in _sizes(folder):
        within = path.relative_to(folder).parts
        part = within[0] if len(within) > 1 else OTHER
        parts[part] = parts.get(part, 0) + size
    return dict(sorted(parts.items(), key=lambda each: -each[1]))


def _sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            try:
                yield path, path.lstat().st_size
            except FileNotFoundError:
                continue

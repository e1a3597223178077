"""Removing folders that an agent filled.

Invariant: nothing outside the folder is touched, whatever names, links, permissions or depth are inside (its processes are dead by
then).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

_PAUSE_EVERY = 256
_numbers = count()


def remove_stepwise(folder: Path) -> Iterator[None]:
    """Removes `folder` step by step; each item is a pause in which a caller may do other work. Missing is fine.

    Every folder met is moved next to the root and emptied there, so paths stay short and nothing recurses,
    however deep it goes.
    """
    graveyard = folder.with_name(folder.name + ".removed")
    graveyard.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        folder.rename(graveyard / f"{next(_numbers)}")
    pending = list(graveyard.iterdir())  # more than one where an earlier call was interrupted
    removed = 0
    while pending:
        current = pending.pop()
        current.chmod(0o700)
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)  # moving a folder writes its `..`
                    pending.append(graveyard / f"{next(_numbers)}")
                    os.rename(entry.path, pending[-1])
                else:
                    os.unlink(entry.path)
                removed += 1
                if removed % _PAUSE_EVERY == 0:
                    yield
        try:
            current.rmdir()
        except OSError:  # what was listed while it changed: look again
            pending.append(current)
    graveyard.rmdir()


def remove_tree(folder: Path) -> None:
    """`remove_stepwise` without a pause."""
    for _ in remove_stepwise(folder):
        pass

"""Removing folders that an agent filled.

Invariant: nothing outside the folder is touched, whatever names, links, permissions or depth are inside (its processes are dead by
then).
"""

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

_numbers = count()


def remove_tree(folder: Path) -> None:
    """Removes `folder`. Missing is fine. Blocks, on some file systems for milliseconds a folder. Raises `OSError`.

    Every folder met is moved next to the root and emptied there, so paths stay short and nothing recurses,
    however deep it goes.
    """
    graveyard = folder.with_name(folder.name + ".removed")
    graveyard.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        folder.rename(graveyard / f"{next(_numbers)}")
    pending = list(graveyard.iterdir())  # more than one where an earlier call was interrupted
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
        try:
            current.rmdir()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            pending.append(current)  # a listing may miss entries of a folder that shrinks meanwhile
    graveyard.rmdir()

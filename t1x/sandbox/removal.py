"""Removing folders that an agent filled.

Invariants:
- nothing outside the folder is touched, whatever names, links, permissions or depth are inside (its processes are dead by then);
- it takes no room on the disk, so that it works where that is full.
"""

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

_SUFFIX = ".removed"
_numbers = count()


def remove_tree(folder: Path) -> None:
    """Removes `folder`. Missing is fine. Blocks, on some file systems for milliseconds a folder. Raises `OSError`.

    It is renamed first, and every folder met in it is moved up to it and emptied there, so paths stay short and nothing recurses,
    however deep it goes. An interrupted call's rest has the new name; what is given with that is removed as well.
    """
    top = folder if folder.name.endswith(_SUFFIX) else folder.with_name(folder.name + _SUFFIX)
    with suppress(FileNotFoundError):
        if top != folder and top.exists():
            top.chmod(0o700)
            folder.chmod(0o700)
            folder.rename(_unused(top))
        elif top != folder:
            folder.rename(top)
    with suppress(FileNotFoundError):
        while not _removed(top):
            pending = _emptied(top)
            while pending:
                current = pending.pop()
                for below in _emptied(current):
                    pending.append(_unused(top))
                    os.rename(below, pending[-1])
                if not _removed(current):
                    pending.append(current)  # a listing may miss entries of a folder that shrinks meanwhile


def _emptied(folder: Path) -> list[Path]:
    """Removes all but folders from a folder; returns those."""
    folder.chmod(0o700)
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # moving a folder writes its `..`
                folders.append(Path(entry.path))
            else:
                os.unlink(entry.path)
    return folders


def _removed(folder: Path) -> bool:
    """Whether it was empty, and is gone."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _unused(top: Path) -> Path:
    while (path := top / f"removing-{next(_numbers)}").exists():  # of an interrupted call
        pass
    return path

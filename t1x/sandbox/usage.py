"""What a trial's files take.

Invariant: no link is followed and nothing outside the folder is counted, whatever is moved, removed or replaced meanwhile.
"""

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from t1x.sandbox.processes import Running

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_BLOCK = 512


@dataclass(slots=True)
class Usage:
    """A sum, to be added to."""

    disk: int = 0
    """Bytes on disk. A file with several names counts once."""
    files: int = 0
    """Files and folders."""
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def add_tree(self, folder: Path, go_on: Callable[[], bool]) -> None:
        """Adds what is in a folder, until `go_on` says no.

        One descriptor is open at a time, however deep it goes: the way back up is `..`, taken only while it leads to where it came
        from. Where a folder is moved meanwhile, or was locked against us (never against root), what is left isn't counted.
        """
        try:
            current = os.open(folder, _FOLDER)
        except OSError:
            return
        try:
            way = [(_identity(os.fstat(current)), self._add_entries(current))]
            while go_on():
                if way[-1][1]:
                    try:
                        below = os.open(way[-1][1].pop(), _FOLDER, dir_fd=current)
                    except OSError:  # gone, replaced or locked
                        continue
                    status = os.fstat(below)
                    if os.geteuid() != 0 and not status.st_mode & stat.S_IXUSR:  # no way back
                        os.close(below)
                        continue
                    os.close(current)
                    current = below
                    way.append((_identity(status), self._add_entries(current)))
                else:
                    way.pop()
                    if not way:
                        return
                    above = os.open("..", _FOLDER, dir_fd=current)
                    os.close(current)
                    current = above
                    if _identity(os.fstat(current)) != way[-1][0]:
                        return
        except OSError:
            return
        finally:
            os.close(current)

    def add_unlinked(self, processes: Iterable[Running], device: int) -> int:
        """Adds files without a name that processes hold open, where they are on a device. Returns the bytes of those that are in
        memory (`memfd_create`)."""
        memory = 0
        for process in processes:
            folder = f"/proc/{process.pid}/fd"
            try:
                for name in os.listdir(folder):
                    status = os.stat(f"{folder}/{name}")
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode) and self._is_new(status):
                        if status.st_dev == device:
                            self.disk += status.st_blocks * _BLOCK
                        else:
                            memory += status.st_blocks * _BLOCK
            except OSError:  # it has ended or closed one; or it isn't ours to look into
                continue
        return memory

    def _add_entries(self, folder: int) -> list[str]:
        """Adds a folder's entries; the names of the folders among them."""
        folders = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.files += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode) or self._is_new(status):
                        self.disk += status.st_blocks * _BLOCK
        except OSError:
            pass
        return folders

    def _is_new(self, status: os.stat_result) -> bool:
        known = len(self._seen)
        self._seen.add(_identity(status))
        return len(self._seen) > known


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino

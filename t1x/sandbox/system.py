"""Files of this machine that fresh processes see, such as an interpreter.

Invariant: whoever runs in a sandbox can read them and no one there can change them. What a trial's user can't reach where it lies
(root's own folders, for one) is linked or copied into the run folder, once, under the path it has, and goes with it.
"""

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

_LEFT_OUT = shutil.ignore_patterns("site-packages", "dist-packages", "test", "config-*")
"""Of an interpreter's library: what others installed, its own tests and what it takes to build it are most of its size."""


class SystemFiles:
    """Where on the host a sandbox mounts them from."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made when something has to be linked or copied."""
        self._folder = folder
        self._places: dict[Path, Path] = {}
        self._lock = Lock()

    def fetch(self, sources: Iterable[Path]) -> None:
        """Makes `place` known for these files and folders; from any thread. It takes a second or so where it copies. Raises
        `OSError`."""
        with self._lock:
            for source in sources:
                if source not in self._places:
                    reached = os.geteuid() != 0 or _open_to_all(source)
                    self._places[source] = source if reached else self._copy(source)

    def place(self, source: Path) -> Path:
        """Where a file or folder that was fetched can be reached by anyone."""
        return self._places[source]

    def _copy(self, source: Path) -> Path:
        target = self._folder / source.absolute().relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=_LEFT_OUT, copy_function=_link, dirs_exist_ok=True)
        else:
            _link(str(source), str(target))
        for folder, _, _ in os.walk(self._folder):
            os.chmod(folder, 0o755)  # whatever the umask
        return target


def _open_to_all(path: Path) -> bool:
    """Whether a user who owns nothing can get there and read it, by the folders above it."""
    passed = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.absolute().parents)
    needed = stat.S_IROTH | stat.S_IXOTH if path.is_dir() else stat.S_IROTH
    return passed and path.stat().st_mode & needed == needed


def _link(source: str, target: str) -> str:
    """A hard link, which takes no room, to what anyone may read; else a copy that anyone may."""
    if os.stat(source).st_mode & stat.S_IROTH:
        try:
            os.link(source, target)
            return target
        except OSError:
            pass  # on another file system
    shutil.copy2(source, target)
    os.chmod(target, os.stat(target).st_mode | 0o444)
    return target

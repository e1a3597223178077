"""The folder that holds all sandboxes of one host, and what removes it when nobody else can.

Invariants:
- its name holds its owner (process id and start time), so a folder whose owner is gone is recognised and swept by the next start;
- a janitor process outlives the owner and removes the folder however the owner ended.
"""

import os
import re
import stat
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

from t1x.sandbox.child import Child, start_ticks
from t1x.sandbox.removal import remove_tree

_NAME = re.compile(r"t1x-sandboxes-(\d+)-(\d+)-\d+")
_numbers = count()

_JANITOR = """
read -r _
{kill}
chmod -R u+rwX -- "$1" 2>/dev/null
rm -rf -- "$1" 2>/dev/null || {{ sleep 1; rm -rf -- "$1"; }}
"""
_KILL_MARKED = """
for _ in 1 2 3; do
    for file in $(grep -lsa -F -- "T1X_ROOT=$1/" /proc/[0-9]*/environ); do
        pid=${file#/proc/}
        kill -9 "${pid%/environ}"
    done
done 2>/dev/null
"""


class RunFolder:
    """A folder `t1x-sandboxes-<pid>-<start>-<n>` in `base`; others may pass through it, not list it."""

    def __init__(self, base: Path | None, kill_marked: bool) -> None:
        """Sweeps what dead owners left in `base` (the temp folder where None; made where it isn't there) and makes the folder.
        `kill_marked` has the janitor also kill the processes whose environment names the folder. Raises `ValueError` where it
        can't."""
        base = (base or Path(tempfile.gettempdir())).resolve()
        try:
            _make(base)
            sweep(base)
            self.path = base / f"t1x-sandboxes-{os.getpid()}-{start_ticks(os.getpid())}-{next(_numbers)}"
            self.path.mkdir(mode=0o700)
            self.path.chmod(0o711)  # whatever the umask
        except OSError as error:
            raise ValueError(
                f"sandboxes can't be kept in {base}: {error.strerror}; choose another folder (field `root`)"
            ) from error
        script = _JANITOR.format(kill=_KILL_MARKED if kill_marked else "")
        end, self._alive = os.pipe()
        try:
            self._janitor = Child(("/bin/sh", "-c", script, "sh", str(self.path)), {"PATH": "/usr/bin:/bin"}, {0: end})
        finally:
            os.close(end)

    def remove(self) -> None:
        """Removes the folder and lets the janitor go; safe to call twice."""
        if self._janitor.returncode is None:
            remove_tree(self.path)
            os.close(self._alive)
            self._janitor.wait_blocking(30)


def unusable(base: Path) -> str | None:
    """Why sandboxes can't be kept in `base`, found out without changing anything; None where they can."""
    for folder in (base.absolute(), *base.absolute().parents):
        if folder.exists():
            if not folder.is_dir():
                return f"{folder} isn't a folder"
            return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} can't be written by this user"
    return None


def _make(base: Path) -> None:
    """Makes the folder, and those above it; the sandboxes' users may pass through what was made."""
    for folder in (*reversed(base.parents), base):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            folder.chmod(0o711)  # whatever the umask


def sweep(base: Path) -> None:
    """Removes the run folders in `base` that are ours and whose owner is gone."""
    with os.scandir(base) as entries:
        found = [(entry, match) for entry in entries if (match := _NAME.fullmatch(entry.name.removesuffix(".removed")))]
    for entry, match in found:
        with suppress(FileNotFoundError):  # its janitor may be at work
            status = os.lstat(entry.path)
            alive = start_ticks(int(match[1])) == int(match[2])
            if not alive and status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode):
                remove_tree(Path(entry.path))

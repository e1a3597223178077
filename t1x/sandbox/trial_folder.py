"""One trial's files on the host, and how a path inside the sandbox maps to them.

Invariants:
- what the host reads or writes for a trial stays under the trial's folder: no symbolic link that an agent made is ever followed;
- every file and folder in it belongs to the trial's user.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from t1x.tasks.work_folder import normal, work_folder

HOME = "/home/agent"
"""Home of the agent, inside."""
TMP = "/tmp"


class TrialFolder:
    """The writable folders of one trial: its work folder, /tmp and the home."""

    def __init__(self, path: Path, workdir: str, owner: int | None) -> None:
        """Makes the folders. `owner` is the user and group id they are given to; None leaves them ours. Raises `ValueError` for a
        work folder that can't be one."""
        workdir = work_folder(workdir)
        self.path = path
        self.workdir = workdir
        self.owner = owner
        self._private = count()
        self.mounts: dict[str, Path] = {TMP: path / "tmp", HOME: path / "home", workdir: path / "work"}
        """Path inside -> folder on the host, outer ones first."""
        path.mkdir(mode=0o700)
        self._own(path)
        for folder in self.mounts.values():
            folder.mkdir(mode=0o700)
            self._own(folder)

    def private_folder(self) -> Path:
        """A new, empty folder of the trial; removed with it."""
        folder = self.path / f"private-{next(self._private)}"
        folder.mkdir(mode=0o700)
        self._own(folder)
        return folder

    @property
    def work(self) -> Path:
        """The work folder on the host."""
        return self.mounts[self.workdir]

    def allow_entry(self) -> None:
        """Makes the work folder one that the trial's user can enter, since what is started next is started there: a command may
        have taken the rights to it or, where nothing is isolated, removed it. Call when nothing of the trial runs."""
        try:
            folder = os.open(self.work, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            self.work.unlink(missing_ok=True)
            self.work.mkdir(mode=0o700, parents=True)
            self._own(self.work)
            return
        try:
            mode = os.fstat(folder).st_mode
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{folder}", stat.S_IMODE(mode) | stat.S_IRWXU)
        finally:
            os.close(folder)

    def pipe(self) -> tuple[int, int]:
        """A pipe for output, which belongs to the trial's user so that /dev/stdout can be opened in it."""
        ours, its = os.pipe()
        self._own(its)
        return ours, its

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Writes one regular file, by its path inside; an existing one is replaced. Raises `ValueError` for a path outside the
        writable folders or one that leads through a link."""
        with self._parent(path, make=True) as (folder, name):
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                pass
            except IsADirectoryError as error:
                raise ValueError(f"{path}: there is a folder of that name") from error
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(name, "wb", opener=lambda file, _: os.open(file, flags, 0o600, dir_fd=folder)) as target:
                target.write(content)
                os.fchmod(target.fileno(), mode)
                if self.owner is not None:
                    os.fchown(target.fileno(), self.owner, self.owner)

    def read(self, path: str) -> bytes:
        """Reads one regular file, by its path inside. Raises `FileNotFoundError` for anything else."""
        try:
            with self._parent(path, make=False) as (folder, name):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                with open(name, "rb", opener=lambda file, _: os.open(file, flags, dir_fd=folder)) as source:
                    if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                        raise FileNotFoundError(f"{path}: not a regular file")
                    return source.read()
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise FileNotFoundError(f"{path}: no regular file that can be read without following links ({error})") from error

    @contextmanager
    def _parent(self, path: str, make: bool) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder that holds `path`, reached without following links, and the last part of the path."""
        inside = normal(path)
        root = max((m for m in self.mounts if inside.startswith(m + "/")), key=len, default=None)
        if root is None:
            raise ValueError(f"{path}: outside the sandbox's writable folders {', '.join(self.mounts)}")
        *folders, name = inside[len(root) + 1 :].split("/")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        current = os.open(self.mounts[root], flags)
        try:
            for part in folders:
                try:
                    below = os.open(part, flags, dir_fd=current)
                except FileNotFoundError:
                    if not make:
                        raise
                    os.mkdir(part, 0o755, dir_fd=current)
                    below = os.open(part, flags, dir_fd=current)
                    os.fchmod(below, 0o755)
                    self._own(below)
                except NotADirectoryError as error:
                    raise ValueError(f"{path}: {part} is a link or a file, not a folder") from error
                os.close(current)
                current = below
            yield current, name
        finally:
            os.close(current)

    def _own(self, target: Path | int) -> None:
        if self.owner is not None:
            os.chown(target, self.owner, self.owner)

"""The files of a task, to and from a folder."""

import stat
from collections.abc import Iterable
from pathlib import Path

from t1x.tasks.task import TaskFile


def write_files(files: Iterable[TaskFile], folder: Path) -> None:
    """Writes contents and modes; makes parent folders."""
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)


def read_files(folder: Path) -> tuple[TaskFile, ...]:
    """Every file under a folder, in the order of the paths. Raises `ValueError` for what isn't a readable regular file."""
    found = []
    for path in folder.rglob("*"):
        kind = path.lstat().st_mode
        if stat.S_ISREG(kind):
            try:
                content = path.read_bytes()
            except OSError as error:
                raise ValueError(f"{path}: can't be read ({error.strerror})") from None
            found.append(TaskFile(path.relative_to(folder).as_posix(), content, stat.S_IMODE(kind)))
        elif not stat.S_ISDIR(kind):
            raise ValueError(f"{path}: a task holds only regular files and folders; replace this by a copy of what it stands for")
    return tuple(sorted(found, key=lambda file: file.path))

"""A task's tests on the host, where a verifier's sandbox mounts them from."""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from t1x.tasks.task import TaskFile


def write_tests(folder: Path, files: Iterable[TaskFile]) -> None:
    """Writes them into the empty folder, readable by whoever runs them."""
    for file in files:
        target = folder / file.path
        inside = target.is_relative_to(folder) and ".." not in target.parts
        assert inside, f"{file.path} leads out of the tests' folder"
        for parent in reversed(target.relative_to(folder).parents[:-1]):
            (folder / parent).mkdir(exist_ok=True)
            (folder / parent).chmod(0o755)
        target.write_bytes(file.content)
        target.chmod(file.mode | 0o444)


def digest(folder: Path) -> bytes:
    """SHA-256 over the path, the mode and the content of everything in it; no link is followed."""
    sum = hashlib.sha256()
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            content = b""
            if stat.S_ISREG(mode):
                content = path.read_bytes()
            elif stat.S_ISLNK(mode):
                content = os.fsencode(path.readlink())
            row = f"{path.relative_to(folder)}\0{mode}\0{hashlib.sha256(content).hexdigest()}\0"
            sum.update(row.encode("utf-8", "surrogateescape"))
    return sum.digest()

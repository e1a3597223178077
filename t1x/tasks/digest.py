"""What a task is, as a checksum: another file, mode or content is another checksum."""

import dataclasses
import hashlib
import os
import stat
from pathlib import Path

from t1x.tasks.task import Task


def folder_digest(folder: Path) -> str:
    """SHA-256 over the files of a task's folder: mode, path and content of each, in the order of the paths; the folder's own name
    plays no part. What isn't a regular file is told apart by its mode, and never opened. Raises `OSError`."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else b""
        if not stat.S_ISDIR(mode):
            name = os.fsencode(path.relative_to(folder).as_posix())
            digest.update(b"%o %d %d\n%b%b" % (mode, len(name), len(content), name, content))
    return digest.hexdigest()


def task_digest(task: Task) -> str:
    """The same for a task that has no folder: SHA-256 over all of it but its name and its baseline, which is found out by running
    it."""
    return hashlib.sha256(repr(dataclasses.replace(task, name="", baseline=None)).encode()).hexdigest()

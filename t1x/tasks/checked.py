"""What a pool's manifest knows about the tasks in its folder.

Invariant: an entry says nothing about a task that is no longer the one that was checked.
"""

import dataclasses
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

from t1x.tasks.digest import folder_digest
from t1x.tasks.manifest import NAME, Entry, Fault, read_manifest
from t1x.tasks.task import Task


class CheckedTasks:
    """The manifest of one pool, where it has one."""

    def __init__(self, pool: Path) -> None:
        """Raises `ValueError` for a file in the manifest's place that isn't one."""
        self._pool = pool
        self._manifest = read_manifest(pool / NAME)
        self._entries: dict[str, Entry | None] = {}
        self._stale: list[str] = []

    def without(self, folders: Sequence[Path], faults: Collection[Fault]) -> list[Path]:
        """The folders of tasks that have none of these faults; warns of how many that leaves out. Raises `ValueError` where that
        isn't known of each, or none is left."""
        if not faults:
            return list(folders)
        entries = [(folder, self._entry(folder)) for folder in folders]
        if unchecked := [folder.name for folder, entry in entries if entry is None]:
            raise ValueError(
                f"{self._pool}: FolderPool.without leaves out tasks with {', '.join(faults)}, but {len(unchecked)} of its "
                f"tasks haven't been checked as they are, such as {unchecked[0]}; run `t1x tasks check {self._pool}`"
            )
        left = [folder for folder, entry in entries if entry and not any(found.fault in faults for found in entry.findings)]
        if not left:
            raise ValueError(f"{self._pool}: every task has one of the faults {', '.join(faults)}; shorten FolderPool.without")
        if len(left) < len(folders):
            out = len(folders) - len(left)
            warnings.warn(f"{self._pool}: FolderPool.without leaves out {out} of its {len(folders)} tasks", stacklevel=2)
        return left

    def known(self, task: Task, folder: Path) -> Task:
        """The task with its baseline and, unless it says so itself, the number of its assertions."""
        entry = self._entry(folder)
        if entry is None or entry.assertions is None:
            return task
        return dataclasses.replace(
            task,
            baseline=None if entry.baseline is None else frozenset(entry.baseline),
            assertions=task.assertions or len(entry.assertions),
        )

    def faults(self, folder: Path) -> tuple[Fault, ...] | None:
        """What the check found in a task; None where it wasn't checked as it is."""
        entry = self._entry(folder)
        return None if entry is None else tuple(found.fault for found in entry.findings)

    def say_stale(self) -> None:
        """Warns of entries that were left alone."""
        if self._stale:
            warnings.warn(
                f"{self._pool / NAME}: {len(self._stale)} of its tasks, such as {self._stale[0]}, have changed since they were "
                f"checked, so what it says about them isn't used; run `t1x tasks check {self._pool}`",
                stacklevel=2,
            )

    def _entry(self, folder: Path) -> Entry | None:
        """What holds of a task, found out once."""
        if folder.name not in self._entries:
            entry = self._manifest.tasks.get(folder.name) if self._manifest else None
            if entry is not None and entry.sha256 != folder_digest(folder):
                self._stale.append(folder.name)
                entry = None
            self._entries[folder.name] = entry
        return self._entries[folder.name]

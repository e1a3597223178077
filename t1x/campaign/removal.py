"""Removing runs.

Invariants:
- nothing of a run that is going on, or that one going on was started from, is removed;
- the record goes last, so that what an interruption leaves can be removed by the same command.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from t1x.campaign.experiment import Experiment
from t1x.campaign.identity import resolve_starts
from t1x.campaign.record import RECORD, Run, Status, runs
from t1x.campaign.start import CheckpointStart
from t1x.campaign.starts import everything
from t1x.config import load
from t1x.config.walk import walk


def check_removable(wanted: Iterable[Run]) -> None:
    """Raises `ValueError` for a run that is going on, or whose weights one that is going on starts from."""
    for run in wanted:
        if run.status is Status.RUNNING:
            raise ValueError(f"{run.folder.name} is running (process {run.pid}); `t1x runs stop {run.folder.name}` stops it")
        users = [other for other in runs(run.folder.parent) if other.status is Status.RUNNING and _starts_from(other, run)]
        if users:
            raise ValueError(f"{users[0].folder.name}, which is running, starts from {run.folder.name}; wait for it or stop it")


def remove_run(run: Run) -> str:
    """Removes a run's folder, and the run in its tracking store; gives what a reader should know of the latter, if anything."""
    note = _forgotten(run)
    for path in run.folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != RECORD:
            path.unlink()
    shutil.rmtree(run.folder)
    return note


def _forgotten(run: Run) -> str:
    if run.tracking_id is None:
        return ""
    try:
        root = _experiment(run)
        there = root is not None and root.tracking.forget(run.folder, run.tracking_id)
    except ValueError as error:
        return f"{run.folder.name} is still in its tracking store: {error}"
    return "" if there else f"{run.folder.name} wasn't found in its tracking store"


def _starts_from(other: Run, run: Run) -> bool:
    try:
        root = _experiment(other)
        needed = resolve_starts(root) if root is not None else ()
    except (ValueError, FileNotFoundError):  # its files have changed since: nothing is known of it
        return False
    if root is None:
        return False
    paths = [each.path for _, each in walk(root, "") if isinstance(each, CheckpointStart)]
    inside = any(_is_inside(path, run.folder) for path in paths)
    return inside or any(each.run_digest == run.run_digest for each in everything(needed))


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _experiment(run: Run) -> Experiment | None:
    config = run.folder / "config.gin"
    root = load(config).root if config.is_file() else None
    return root if isinstance(root, Experiment) else None

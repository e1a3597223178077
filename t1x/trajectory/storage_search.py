"""Finding the stored batches and trials of a run."""

from collections.abc import Callable
from pathlib import Path

from t1x.config.names import closest
from t1x.text.visible import legible
from t1x.trajectory.storage_folder import FOLDER, BatchFile, batch_files
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_ids


def stored_batches(run: Path, step: str | None = None) -> list[BatchFile]:
    """The files of a run's batches, in order; of one alone where a step is given, as `12` or `warmup-0`. Raises `ValueError` where
    there is none, and where some are another run's."""
    files = batch_files(run)
    if not files:
        raise ValueError(f"{run} has kept no trials; StoredTrajectories says which are kept (every = 0: none)")
    _check_of_one_run(run, files)
    if step is None:
        return files
    wanted = f"train-{step}" if step.isdigit() else step
    chosen = [file for file in files if file.name == wanted]
    if not chosen:
        raise ValueError(f"{run} has kept no batch {wanted}; it has {told(files)}")
    return chosen


def _check_of_one_run(run: Path, files: list[BatchFile]) -> None:
    """By when it was started, which is the same after it was renamed and when it was gone on with as another experiment."""
    owners: dict[str, list[BatchFile]] = {}
    names: dict[str, str] = {}
    for file in files:
        try:
            said = read_header(file.path).identity
        except TrialFileError:  # whoever reads it tells
            continue
        if "started" in said:
            owners.setdefault(said["started"], []).append(file)
            names[said["started"]] = said.get("run", "")
    if len(owners) > 1:
        listed = "; ".join(f"{told(own)} of {names[started]}" for started, own in owners.items())
        raise ValueError(legible(f"{run / FOLDER} holds trials of several runs ({listed}); remove those that aren't this run's"))


def find_trial(run: Path, trial: str, step: str | None, warn: Callable[[str], None]) -> BatchFile:
    """The file that has the trial. Raises `ValueError` where there is none or several; `warn` is told of files that can't be read,
    which are passed over."""
    ids: list[str] = []
    found = []
    for file in stored_batches(run, step):
        try:
            own = read_ids(file.path)
        except TrialFileError as error:
            warn(str(error))
            continue
        ids += own
        if trial in own:
            found.append(file)
    if len(found) > 1:
        raise ValueError(f"several batches have a trial {trial}: {told(found)}; --step chooses one")
    if not found:
        where = f"batch {step} of {run}" if step else str(run)
        raise ValueError(f"{where} has no trial {trial!r}{closest(trial, ids)}; `t1x trajectory list {run}` shows those there are")
    return found[0]


def told(files: list[BatchFile]) -> str:
    """`warmup-0, train-1, train-2`, of many the first and last ones."""
    names = [file.name for file in files]
    return ", ".join(names if len(names) <= 8 else [*names[:4], "…", *names[-3:]])

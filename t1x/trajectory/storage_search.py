"""Finding the stored batches, passes over suites and trials of a run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from t1x.config.names import closest
from t1x.text.visible import legible
from t1x.trajectory.storage_folder import FOLDER, UNTRAINED, BatchFile, batch_files
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_ids


def stored_batches(run: Path, started: str, step: str | None = None, suite: str | None = None) -> list[BatchFile]:
    """The files of a run's rollout batches in order, or of the passes over a suite; where a step is given (`12`, `warmup-0`,
    `untrained`, or a file's name) of that alone. `started` is the run's, by which its files are told from another's: it's the same
    after the run was renamed or gone on with as another experiment. Raises `ValueError` where there is none, and where some are
    another run's."""
    files = [file for file in _own_files(run, started) if file.suite == suite]
    if not files:
        raise ValueError(_nothing(run, suite))
    return files if step is None else of_step(files, step)


def of_step(files: Sequence[BatchFile], step: str) -> list[BatchFile]:
    """Those of a step, given as in `stored_batches`, among all batches of a run, or all passes over a suite. Raises `ValueError`
    where there is none."""
    if not (chosen := _at(files, step)):
        run, suite = files[0].path.parent.parent, files[0].suite
        wanted = f"evaluation of {suite} at {step}" if suite else f"batch {f'train-{step}' if step.isdigit() else step}"
        raise ValueError(f"{run} has kept no {wanted}; it has {told(files)}")
    return chosen


def newest(files: Sequence[BatchFile]) -> list[BatchFile]:
    """The newest batch, or all passes over a suite that were made with the newest policy."""
    return [file for file in files if file.moment[:3] == files[-1].moment[:3]]


def find_trial(run: Path, started: str, trial: str, step: str | None, suite: str | None, warn: Callable[[str], None]) -> BatchFile:
    """The file that has the trial, of rollouts and evaluations, or of a suite's alone. Raises `ValueError` where there is none or
    several; `warn` is told of files that can't be read, which are passed over."""
    files = stored_batches(run, started, step, suite) if suite else _own_files(run, started)
    if not files:
        raise ValueError(_nothing(run, None))
    if step is not None and not (files := _at(files, step)):
        raise ValueError(f"{run} has kept nothing of step {step}; it has {told(_own_files(run, started))}")
    ids: list[str] = []
    found = []
    for file in files:
        try:
            own = read_ids(file.path)
        except FileNotFoundError:  # pruned meanwhile
            continue
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
        listing = f"`t1x trajectory list {run}{' --suite NAME' if trial.startswith('eval-') else ''}`"
        raise ValueError(f"{where} has no trial {trial!r}{closest(trial, ids)}; {listing} shows those there are")
    return found[0]


def suites_of(run: Path) -> list[str]:
    """Suites whose trials are kept."""
    return sorted({file.suite for file in batch_files(run) if file.suite})


def _own_files(run: Path, started: str) -> list[BatchFile]:
    """All, once it's clear that they are the run's; a run may remove some meanwhile."""
    files: list[BatchFile] = []
    others: dict[str, list[BatchFile]] = {}
    for file in batch_files(run):
        said: Mapping[str, str] = {}
        with suppress(TrialFileError):  # whoever reads it tells
            try:
                said = read_header(file.path).identity
            except FileNotFoundError:
                continue
        files.append(file)
        if said.get("started", started) != started:
            others.setdefault(said.get("run", "an unnamed run"), []).append(file)
    if others:
        listed = "; ".join(f"{told(own)} of {name}" for name, own in others.items())
        raise ValueError(legible(f"{run / FOLDER} holds trials of other runs ({listed}); remove those from there"))
    return files


def _at(files: Sequence[BatchFile], step: str) -> list[BatchFile]:
    named = step.isdigit() or step == UNTRAINED
    return [file for file in files if (file.at == step and file.purpose != "warmup" if named else file.name == step)]


def _nothing(run: Path, suite: str | None) -> str:
    known = suites_of(run)
    evaluated = f"; of evaluations it has {', '.join(known)}, which --suite shows" if known else ""
    if suite is None:
        why = "StoredTrajectories says which are kept (every = 0: none), and a run that stopped before its first batch has none"
        return f"{run} has kept no trials; {why}{evaluated}"
    return f"{run} has kept no trials of a suite {suite!r}{closest(suite, known)}" + (
        f"; it has {', '.join(known)}" if known else "; StoredTrajectories says how many are kept (evaluations = 0: none)"
    )


def told(files: Sequence[BatchFile]) -> str:
    """`warmup-0, train-1, train-2`, of many the first and last ones."""
    names = [file.name for file in files]
    return ", ".join(names if len(names) <= 8 else [*names[:4], "…", *names[-3:]])

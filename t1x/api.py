"""What a program uses; the command line is a thin layer on it. Each function imports what it needs when it's called."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t1x.campaign.record import Run
    from t1x.config import Resolved, Root


def load(path: str | Path, site: str | None = "auto", set: str | Sequence[str] = (), smoke: bool = False) -> "Resolved":
    """Resolves a Gin file on a site (`"auto"`: `laptop` where there's no GPU, else `cluster`; None: the bare file), then each Gin
    text of `set` (or that one). With `smoke` it is cut to one tiny step that is kept in the folder `smoke` of the runs folder.
    Raises `FileNotFoundError`, or `ValueError` with everything that is wrong."""
    from t1x import config

    resolved = config.load(path, site=site, set=[set] if isinstance(set, str) else set)
    if not smoke:
        return resolved
    from t1x.campaign.smoke import smoke_test

    return smoke_test(resolved)


def run(experiment: "Resolved | Root", resume: bool = False, allow_changes: bool = False) -> Any:
    """Runs what a file describes, or a tree that was built in Python. A campaign or an evaluation gives its `Run`, a grid its cells
    that failed. With `resume` a campaign or an evaluation goes on with its newest run that was interrupted, where there is one;
    `allow_changes` lets it go on although the experiment isn't the same any more (a grid always goes on). Raises `NotHere` with
    everything that this machine lacks for it, before anything starts, and `ValueError` for what the user can mend."""
    from t1x.config import Resolved, Root
    from t1x.config.validate import validated

    root = experiment.root if isinstance(experiment, Resolved) else experiment
    file, origins = (experiment.path, experiment.origins) if isinstance(experiment, Resolved) else (None, None)
    if not isinstance(root, Root):
        what = f"a {type(root).__name__}, {root!r:.80}"
        raise ValueError(f"t1x.run takes what t1x.load gives, or a tree of components such as a Campaign, not {what}")
    root = validated(root)
    from t1x.campaign.experiment import Experiment

    if resume and isinstance(root, Experiment):
        from t1x.campaign.resume import Resume

        return root.run(file, origins, Resume(allow_changes))
    return root.run(file, origins)


def runs(folder: str | Path = "runs") -> "list[Run]":
    """The runs of a runs folder, the newest first. Warns of one that can't be read and leaves it out."""
    from t1x.campaign import record

    return record.runs(folder)


def evaluate(
    checkpoint: str | Path,
    suites: str | Sequence[str],
    *,
    like: str | Path | None = None,
    site: str | None = "auto",
    set: str | Sequence[str] = (),
    runs: str | Path = "runs",
) -> "Run":
    """Evaluates weights on suites, as a run of its own; gives that run. `checkpoint` is a run (its folder, its name in the folder
    `runs`, its tracking id), a checkpoint's folder or a policy's. Each suite is the name of one that the run's experiment has, or a
    Gin file. The settings are those of the run, or of the experiment file `like` (which a policy's folder that lies in no run
    needs); each Gin text of `set` wins over them. Raises what `run` does."""
    from t1x.campaign.checkpoint_evaluation import evaluation_of

    texts, names = ([value] if isinstance(value, str) else value for value in (set, suites))
    wanted = None if like is None else str(like)
    found: Run = run(evaluation_of(str(checkpoint), names, like=wanted, site=site, set=texts, runs=Path(runs)))
    return found

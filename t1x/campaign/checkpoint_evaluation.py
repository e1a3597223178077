"""The evaluation of weights that are there already: those of a run, or of any folder."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from t1x.campaign.evaluation import Evaluation
from t1x.campaign.experiment import Experiment
from t1x.campaign.find_run import find_run, run_around
from t1x.campaign.record import RECORD, Run, read_run
from t1x.campaign.start import CheckpointStart
from t1x.campaign.suite import Suite
from t1x.campaign.suite_file import suites_in
from t1x.config import dump, load
from t1x.config.explain import reasons
from t1x.config.names import closest, with_article
from t1x.config.places import shown

CONFIG = "config.json"
"""Of a network in Hugging Face layout."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What is evaluated."""

    policy: Path
    """Its folder."""
    run: Run | None
    """The run that they are of, if any."""
    newest: bool = False
    """Whether the run was named, not one of its checkpoints."""

    @property
    def name(self) -> str:
        """Of their checkpoint and run, or of the folder alone."""
        folder = self.policy.resolve()
        checkpoint = folder.parent.name if folder.name == "policy" else folder.name
        return checkpoint if self.run is None else f"{self.run.name}-{checkpoint}"


def evaluation_of(
    checkpoint: str,
    suites: Sequence[str],
    *,
    like: str | None = None,
    site: str | None = None,
    set: Sequence[str] = (),
    runs: Path = Path("runs"),
) -> Evaluation:
    """The evaluation of a checkpoint on suites, each the name of one that the run's own experiment has, or a Gin file. The rest
    (model, harness, engine, sandbox, seed, …) is as in that experiment, or as in `like`, in whose runs folder it is kept then;
    each Gin text of `set` wins over both. Raises `ValueError` for what the user can mend."""
    weights = find_weights(checkpoint, runs)
    source = like or (str(weights.run.folder / "config.gin") if weights.run else None)
    if source is None:
        raise ValueError(
            f"{weights.policy} lies in no run, so nothing says which harness, tokenizer and engine go with it; name an experiment "
            f"that has them, as in --like experiments/quickstart.gin"
        )
    root = load(source, site=site).root
    if not isinstance(root, Experiment):
        raise ValueError(f"{source} describes {with_article(type(root).__name__)}; an evaluation takes after one experiment")
    if not suites:
        raise ValueError(f"nothing to evaluate on; name a suite{_known(root)}")
    chosen = tuple(suite for name in suites for suite in _suites(name, root, site))
    values = {name: getattr(root, name) for name in Experiment.model_fields}
    values |= {
        "start": CheckpointStart(path=weights.policy),
        "suites": chosen,
        "name": f"eval-{weights.name}",
        "tracking": root.tracking.ungrouped(),
        "runs": root.runs if like or weights.run is None else weights.run.folder.parent,
    }
    try:
        evaluation = Evaluation.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{checkpoint} can't be evaluated so: {reasons(error)}") from error
    return _changed(evaluation, set)


def find_weights(checkpoint: str, runs: Path) -> Weights:
    """The policy that is meant: the newest one of a run, that of a checkpoint's folder, or the folder itself. Raises `ValueError`
    where there is none."""
    folder = Path(checkpoint)
    if not folder.exists() and (whole := run_around(folder)):
        raise ValueError(f"there is no {folder}; {_kept(whole)}")
    if not folder.is_dir() or (folder / RECORD).is_file():
        run = find_run(checkpoint, runs)
        return Weights(_newest_policy(run), run, newest=True)
    policy = next((each for each in (folder, folder / "policy") if (each / CONFIG).is_file()), None)
    above = run_around((policy or folder).resolve())
    if policy is None:
        others = f"; {_kept(above)}" if above else ""
        raise ValueError(f"{folder} holds no policy: neither it nor {folder / 'policy'} has a {CONFIG}{others}")
    return Weights(policy, read_run(above) if above else None)


def _newest_policy(run: Run) -> Path:
    if run.weights is not None and (run.weights / "policy" / CONFIG).is_file():
        return run.weights / "policy"
    if not (stored := _policies(run.folder)):
        raise ValueError(f"{run.folder.name} has kept no weights of a policy, and only a policy can be evaluated")
    return stored[-1]


def _policies(run: Path) -> list[Path]:
    """Those that a run has kept, the oldest first."""
    stored = (run / "checkpoints").glob(f"[!.]*/policy/{CONFIG}")
    return [each.parent for each in sorted(stored, key=lambda each: each.stat().st_mtime)]


def _kept(run: Path) -> str:
    """Which checkpoints of a run there are to choose from."""
    names = [policy.parent.name for policy in _policies(run)]
    return f"{shown(run / 'checkpoints')} has {', '.join(names)}" if names else f"{run.name} has kept no weights of a policy"


def _suites(name: str, root: Experiment, site: str | None) -> tuple[Suite, ...]:
    if named := tuple(suite for suite in root.suites if suite.name == name):
        return named
    if not name.endswith(".gin"):
        raise ValueError(f"there is no suite {name!r}{closest(name, [each.name for each in root.suites])}{_known(root)}")
    return suites_in(name, root.site or site)


def _known(root: Experiment) -> str:
    own = [suite.name for suite in root.suites]
    return (f"; its experiment has {', '.join(own)}" if own else "; its experiment has none") + "; a Gin file is one too"


def _changed(evaluation: Evaluation, settings: Sequence[str]) -> Evaluation:
    if not settings:
        return evaluation
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "evaluation.gin"
        draft.write_text(dump(evaluation), encoding="utf-8")
        root = load(draft, set=settings).root
    assert isinstance(root, Evaluation)
    return root

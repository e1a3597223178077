"""What a command on a pool of tasks is given: a folder of tasks, or an experiment whose pool or suite is meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.experiment import Experiment
from t1x.campaign.suite import Suite
from t1x.campaign.suite_file import suites_in
from t1x.cli.options import print_notes
from t1x.config import load
from t1x.config.names import closest, with_article
from t1x.config.places import find, siblings
from t1x.curation.candidates import pool_folder
from t1x.tasks.folder import FolderPool
from t1x.tasks.manifest import NAME
from t1x.tasks.pool import Pool


@dataclass(frozen=True, slots=True)
class PoolTarget:
    """A pool, and where it comes from."""

    label: str
    """How a reader calls it."""
    pool: Pool
    experiment: Experiment | None = None
    """None for a folder, and for a suite of no experiment."""

    @property
    def manifest(self) -> Path:
        """Where its manifest lies unless somebody says otherwise: in the pool's folder, or in the working directory for a pool that
        has none."""
        folder = pool_folder(self.pool)
        return folder / NAME if folder is not None else Path(f"{self.label.replace(', ', '-')}-manifest.json")


def pool_target(target: str, suite: str | None, site: str, settings: Sequence[str]) -> PoolTarget:
    """The training pool of an experiment, or one of its suites; or a folder. Raises `FileNotFoundError`, or `ValueError` with what
    is wrong."""
    if Path(target).is_dir():
        if suite is not None or settings:
            raise ValueError(f"{target} is a folder of tasks; --suite and --set belong to an experiment file")
        return PoolTarget(Path(target).resolve().name, FolderPool(path=Path(target)))
    _require(target)
    resolved = load(target, site=site, set=settings)
    print_notes(resolved.notes)
    root, name = resolved.root, Path(target).stem
    if not isinstance(root, Experiment):
        raise ValueError(f"{target} describes {with_article(type(root).__name__)}, which has no pool of tasks")
    if suite is not None:
        return PoolTarget(f"{name}, {suite}", _named(root.suites, suite, target).pool, root)
    pool = getattr(root, "pool", None)
    if pool is None:
        named = ", ".join(each.name for each in root.suites) or "it has none"
        raise ValueError(
            f"{target} describes {with_article(type(root).__name__)}, which has no training pool; --suite names one of its suites "
            f"({named})"
        )
    return PoolTarget(name, pool, root)


def suite_target(target: str, experiment: Experiment | None, suite: str | None, site: str) -> PoolTarget:
    """Held-out tasks: a folder, a suite of that experiment, or a Gin file that has one. Raises what `pool_target` does."""
    if experiment is not None and target in {each.name for each in experiment.suites}:
        return PoolTarget(target, _named(experiment.suites, target, target).pool, experiment)
    if Path(target).is_dir():
        return PoolTarget(Path(target).resolve().name, FolderPool(path=Path(target)))
    if find(target) is None and experiment is not None and not target.endswith(".gin"):
        names = [each.name for each in experiment.suites]
        raise ValueError(
            f"{target!r} is no folder, Gin file or suite of the experiment ({', '.join(names)}){closest(target, names)}"
        )
    _require(target)
    suites = suites_in(target, site)
    if suite is None and len(suites) > 1:
        raise ValueError(f"{target} has {len(suites)} suites; --suite names one of {', '.join(each.name for each in suites)}")
    found = _named(suites, suite, target) if suite is not None else suites[0]
    return PoolTarget(found.name, found.pool)


def _require(target: str) -> None:
    """Raises `FileNotFoundError` for what looks like a folder, and is none."""
    if find(target) is None and not target.endswith(".gin"):
        raise FileNotFoundError(f"there is no folder {target}, and no Gin file of that name{closest(target, siblings(target))}")


def _named(suites: Sequence[Suite], name: str, target: str) -> Suite:
    names = [each.name for each in suites]
    if name not in names:
        raise ValueError(f"{target} has no suite {name!r}; it has {', '.join(names) or 'none'}{closest(name, names)}")
    return suites[names.index(name)]

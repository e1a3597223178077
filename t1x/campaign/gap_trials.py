"""Which stored trials a gap is measured on, and with which weights: with those that sampled them, where both are kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.checkpoint_evaluation import Weights
from t1x.campaign.policy_version import kept_weights, version_of
from t1x.trajectory.storage_folder import of_untrained
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_header, read_summaries

Ids = frozenset[str]
Groups = Mapping[int | None, Ids]
"""Trials by the version that sampled all of each; None where several did, since weights changed while it ran, and where it was the
untrained policy, whose weights nobody keeps."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Weights and trials."""

    weights: Weights
    path: Path
    """The file of the trials."""
    ids: Ids
    """Those of them that are measured."""


def matched(
    weights: Weights, paths: Sequence[Path], of_run: bool, temperature: float | None, warn: Callable[[str], None]
) -> Matched:
    """Of files of trials, the newest first. `of_run`: they are of the run that the weights are of. Then the trials that the weights
    sampled, in the first file that has some; where none has and a run was named instead of weights, the newest trials whose
    sampler is kept, with its weights. Else the newest trials, whoever sampled them. Trials at temperature 0 and those without a
    sampled token can't be measured, nor, unless it's None, those at another `temperature`. `warn` is told of files that can't be
    read. Raises `ValueError` where nothing can be measured."""
    found: list[tuple[Path, Groups]] = []
    version = version_of(weights) if of_run else None
    for path in paths:
        try:
            groups = _by_version(path, temperature)
        except FileNotFoundError:  # the run has removed it meanwhile
            continue
        except TrialFileError as error:
            warn(f"warning: {error}")
            continue
        if version is not None and (ids := groups.get(version)):
            return Matched(weights, path, ids)
        found.append((path, groups))
    if of_run and weights.newest and weights.run is not None:
        for path, groups in found:
            for sampler in sorted((each for each in groups if each is not None), reverse=True):
                if kept := kept_weights(weights.run, sampler):
                    return Matched(kept, path, groups[sampler])
    for path, groups in found:
        if groups:
            return Matched(weights, path, frozenset[str]().union(*groups.values()))
    where = paths[0] if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
    at = "above 0" if temperature is None else f"of {temperature:g}"
    raise ValueError(f"{where} holds no readable trial that sampled a token at a temperature {at}; --sample N runs new ones")


def _by_version(path: Path, temperature: float | None) -> Groups:
    """The trials that can be measured, at a temperature or at any."""
    groups: dict[int | None, set[str]] = {}
    untrained = of_untrained(read_header(path).identity)
    for trial in read_summaries(path):
        if trial.loss_tokens and (min(trial.temperatures) > 0 if temperature is None else trial.temperatures == {temperature}):
            version = min(trial.versions) if len(trial.versions) == 1 and not untrained else None
            groups.setdefault(version, set()).add(trial.id)
    return {version: frozenset(ids) for version, ids in groups.items()}

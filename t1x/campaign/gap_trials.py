"""Which stored trials a gap is measured on, and with which weights: with those that sampled them, where both are kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t1x.campaign.checkpoint_evaluation import Weights
from t1x.campaign.policy_version import kept_weights, version_of
from t1x.trajectory.storage_header import TrialFileError
from t1x.trajectory.storage_reader import read_summaries

Ids = frozenset[str]
Groups = Mapping[frozenset[int], Ids]
"""Trials by the versions that sampled each: several where weights changed while it ran."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Weights and trials."""

    weights: Weights
    path: Path
    """The file of the trials."""
    ids: Ids
    """Those of them that are measured."""


def matched(weights: Weights, paths: Sequence[Path], of_run: bool, temperature: float, warn: Callable[[str], None]) -> Matched:
    """Of files of trials, the newest first. `of_run`: they are of the run that the weights are of. Then the trials that the weights
    sampled, in the first file that has some; where none has and a run was named instead of weights, the newest trials whose
    sampler is kept, with its weights. Else the newest trials, whoever sampled them. Trials at temperature 0 and those without a
    sampled token can't be measured; several files are compared only in trials at the `temperature` of training, since a suite may
    have another. `warn` is told of files that can't be read, where there are others. Raises `ValueError` where nothing can be
    measured, `TrialFileError`."""
    found: list[tuple[Path, Groups]] = []
    version = version_of(weights) if of_run else None
    for path in paths:
        try:
            groups = _by_versions(path, temperature if len(paths) > 1 else None)
        except TrialFileError as error:
            if len(paths) == 1:
                raise
            warn(f"warning: {error}")
            continue
        if version is not None and (ids := groups.get(frozenset({version}))):
            return Matched(weights, path, ids)
        found.append((path, groups))
    if of_run and weights.newest and weights.run is not None:
        for path, groups in found:
            for (version,) in sorted((versions for versions in groups if len(versions) == 1), key=max, reverse=True):
                if kept := kept_weights(weights.run, version):
                    return Matched(kept, path, groups[frozenset({version})])
    for path, groups in found:
        if groups:
            return Matched(weights, path, frozenset[str]().union(*groups.values()))
    where, at = (paths[0], "above 0") if len(paths) == 1 else (paths[0].parent, f"of {temperature:g}")
    raise ValueError(f"{where} holds no trial that sampled a token at a temperature {at}; --sample N runs new ones")


def _by_versions(path: Path, temperature: float | None) -> Groups:
    """The trials that can be measured, at a temperature or at any."""
    groups: dict[frozenset[int], list[str]] = {}
    for trial in read_summaries(path):
        if trial.loss_tokens and (min(trial.temperatures) > 0 if temperature is None else trial.temperatures == {temperature}):
            groups.setdefault(trial.versions, []).append(trial.id)
    return {versions: frozenset(ids) for versions, ids in groups.items()}

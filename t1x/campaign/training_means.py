"""Training metrics of a finished run as one number each, so that runs can be compared."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from t1x.campaign.record import Measured, Run
from t1x.tracking.log import read_log

TRAINING = ""
"""Stands where a suite's name does."""


def with_training_means(run: Run, metrics: Sequence[str]) -> Run:
    """The run with the mean of each metric among its scores: over all training steps that have it, each with the same weight. No
    error goes with it, since the steps of a run aren't independent. Raises `ValueError` for a damaged log."""
    if not metrics:
        return run
    values: dict[str, list[float]] = {name: [] for name in metrics}
    for entry in read_log(run.folder):
        for name in values.keys() & entry.metrics.keys():
            if (value := entry.metrics[name]) is not None:
                values[name].append(value)
    means = {name: Measured(fmean(found), None, len(found)) for name, found in values.items() if found}
    return replace(run, scores={**run.scores, TRAINING: means})


def logged(run: Run) -> list[str]:
    """Names of the metrics that a run has."""
    return sorted({name for entry in read_log(run.folder) for name in entry.metrics})

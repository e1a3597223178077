"""What a few runs say about a setting: means, paired differences and main effects, each with its standard error. Pure functions.

Over several seeds the error is that of the mean of the seeds' values, sd / √n. A single seed says nothing about others, so there
the error is the run's own (an evaluation's is over tasks), and says so.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True, slots=True)
class Value:
    """What one run measured."""

    mean: float
    stderr: float
    """NaN where the run couldn't say."""
    over: str = "tasks"
    """What its error is over, or why there is none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds."""

    mean: float
    error: float
    """Its standard error; NaN where nothing is known."""
    seeds: int
    over: str = "tasks"
    """What the error is over: `seeds` where there are several."""


def over_seeds(values: Mapping[int, Value]) -> Estimate | None:
    """The mean of each seed's value; None where there is no seed."""
    means = [value.mean for value in values.values()]
    if len(means) > 1:
        return Estimate(fmean(means), stdev(means) / math.sqrt(len(means)), len(means), "seeds")
    return next((Estimate(one.mean, one.stderr, 1, one.over) for one in values.values()), None)


def differences(values: Mapping[int, Value], baseline: Mapping[int, Value]) -> dict[int, Value]:
    """Each seed's value minus the baseline's of the same seed, for the seeds that both have. Errors over tasks are added as those
    of independent evaluations, which is too much rather than too little where both are on the same tasks."""
    return {seed: _minus(value, baseline[seed]) for seed, value in values.items() if seed in baseline}


def main_effect(pairs: Iterable[tuple[Mapping[int, Value], Mapping[int, Value]]]) -> tuple[Estimate | None, int]:
    """The effect of a level against the baseline's, averaged over the other axes. `pairs` has (values, baseline's values) by seed
    for each combination of the others. Returns the mean over seeds, and the number of pairs in it: in a seed, only combinations
    that have both count."""
    by_seed: dict[int, list[Value]] = {}
    for values, baseline in pairs:
        for seed, value in differences(values, baseline).items():
            by_seed.setdefault(seed, []).append(value)
    means = {seed: _mean(each) for seed, each in by_seed.items()}
    return over_seeds(means), sum(len(each) for each in by_seed.values())


def _minus(one: Value, other: Value) -> Value:
    return Value(one.mean - other.mean, math.hypot(one.stderr, other.stderr), one.over)


def _mean(values: list[Value]) -> Value:
    error = math.hypot(*(value.stderr for value in values)) / len(values)
    return Value(fmean(value.mean for value in values), error, values[0].over)

"""What is said where trials are invalid."""

from collections.abc import Iterable

from t1x.rollout.causes import by_cause
from t1x.rollout.records import Trial
from t1x.trajectory.ending import EndedBy

SHOWN = 8
"""Causes that are told apart."""


def cause_lines(trials: Iterable[Trial]) -> list[str]:
    """Why trials aren't in a batch, a short line a cause, most frequent first, each with a task that it happened on:
    `3 × verifier_error: timeout: 900 s (task rename-03)`."""
    groups = by_cause(trials)
    lines = [f"{len(group)} × {line} (task {group[0].task.name})" for line, group in groups.items()]
    rest = list(groups.values())[SHOWN:]
    return lines if not rest else [*lines[:SHOWN], f"{sum(map(len, rest))} × {len(rest)} other causes"]


def causes(trials: Iterable[Trial]) -> str:
    """The same in one line."""
    return "; ".join(cause_lines(trials))


def failure(what: str, trials: Iterable[Trial]) -> Exception:
    """The error to raise where no trial is left to go on with: a `ValueError`, since verifiers and the host are the user's to mend,
    but a `RuntimeError` where the engine failed."""
    trials = list(trials)
    kind = RuntimeError if any(trial.ended_by is EndedBy.ENGINE_ERROR for trial in trials) else ValueError
    return kind(f"{what}: {causes(trials)}")

"""What a list of stored trials tells of each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Boundary

SUMMARY_COLUMNS = (
    "id",
    "task",
    "ended_by",
    "reward",
    "resolved",
    "turns.list.element.version",
    "turns.list.element.temperature",
    "trajectories.list.element.loss_mask",
    "trajectories.list.element.boundaries",
)
"""Paths of the columns that it takes."""


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """One trial in short."""

    id: str
    task: str
    ended_by: EndedBy
    reward: float | None
    resolved: bool | None
    turns: int
    tokens: int
    """Of its trajectories, the context among them."""
    loss_tokens: int
    boundaries: Counter[Boundary]
    versions: frozenset[int]
    """Of the policy that sampled its turns."""
    temperatures: frozenset[float]
    """Of its turns."""


def summary_of(row: Mapping[str, Any]) -> TrialSummary:
    """From a row that has these columns. Raises `ValueError` where it's none that was written."""
    masks = [stream["loss_mask"] for stream in row["trajectories"]]
    return TrialSummary(
        id=row["id"],
        task=row["task"],
        ended_by=EndedBy(row["ended_by"]),
        reward=row["reward"],
        resolved=row["resolved"],
        turns=len(row["turns"]),
        tokens=sum(map(len, masks)),
        loss_tokens=sum(int(np.count_nonzero(mask)) for mask in masks),
        boundaries=Counter(Boundary(name) for stream in row["trajectories"] for name in stream["boundaries"]),
        versions=frozenset(turn["version"] for turn in row["turns"]),
        temperatures=frozenset(turn["temperature"] for turn in row["turns"]),
    )

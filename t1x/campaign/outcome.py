"""What an experiment has come to."""

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t1x.campaign.suite import Measure
from t1x.rollout.records import Trial
from t1x.trajectory.storage_folder import UNTRAINED


@dataclass(frozen=True, slots=True)
class Score:
    """One pass over a suite by one policy."""

    step: int | None
    """Training steps that the policy has had: 0 for the start, None for the untrained policy."""
    suite: str
    mode: str
    """The pass's; see `Pass`."""
    ending: str
    """Of its metrics' names where they are kept."""
    label: str
    """How a reader calls the mode."""
    measure: Measure
    """What the suite is judged by."""
    metrics: dict[str, float]
    """See `evaluation_metrics`."""

    @property
    def policy(self) -> str:
        """Its name for a reader."""
        return policy_name(self.step)

    @property
    def value(self) -> float:
        """The measure, 0 to 1."""
        return self.metrics[self.measure]

    @property
    def stderr(self) -> float:
        """Standard error of the value over tasks; NaN for a single task."""
        return self.metrics.get(f"{self.measure}_se", math.nan)

    @property
    def key(self) -> tuple[int | None, str, str]:
        """What tells it from the others of its run."""
        return self.step, self.suite, self.mode

    @property
    def logged(self) -> tuple[dict[str, float], int]:
        """Its metrics as they are tracked, and the step they stand at; the untrained policy's stand under `untrained/` instead of
        `eval/`, at step 0."""
        prefix = UNTRAINED if self.step is None else "eval"
        return {f"{prefix}/{self.suite}/{name}{self.ending}": value for name, value in self.metrics.items()}, self.step or 0


def policy_name(step: int | None) -> str:
    """`untrained`, `start` or `step <n>`; see `Score.step`."""
    return {None: UNTRAINED, 0: "start"}.get(step, f"step {step}")


@dataclass(slots=True)
class Outcome:
    """What an experiment has come to so far; filled as it goes, so that an interrupted one can still be told of."""

    scores: list[Score] = field(default_factory=list)
    steps: dict[int, dict[str, float]] = field(default_factory=dict)
    """Each training step made, with its metrics."""
    causes: dict[int, str] = field(default_factory=dict)
    """Why a step trained nothing, for those that didn't."""
    transcripts: list[Trial] = field(default_factory=list)
    """Trials of the last evaluation or batch, whichever was later."""
    transcripts_of: str = ""
    """Which one that is, for a reader."""
    checkpoint: Path | None = None
    """The newest."""

    def has(self, step: int | None, suite: str, mode: str) -> bool:
        """Whether that pass was made."""
        return any(score.key == (step, suite, mode) for score in self.scores)


class ScoreJournal:
    """`scores.jsonl` of a run: a line a pass, so that none that came to its end is made again."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scores.jsonl"

    def add(self, score: Score) -> None:
        """On disk when this returns."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(score)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Score]:
        """What is in it; a last line that a killed process left unfinished isn't."""
        if not self._file.is_file():
            return []
        found = []
        for line in self._file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                found.append(Score(**json.loads(line)))
            except (ValueError, TypeError):
                break
        return found

    def cut(self, scores: Iterable[Score]) -> None:
        """Keeps only these."""
        draft = self._file.with_name(f".{self._file.name}")
        draft.write_text("".join(json.dumps(asdict(score)) + "\n" for score in scores), encoding="utf-8")
        draft.replace(self._file)


def steps_by_number(steps: dict[str, Any]) -> dict[int, Any]:
    """What JSON made of a mapping by step, with numbers as keys again."""
    return {int(step): value for step, value in steps.items()}

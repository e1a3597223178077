"""Where the stored trials of a run are: `trajectories/<purpose>-<step>.parquet` in its folder."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, auto
from pathlib import Path

FOLDER = "trajectories"
UNTRAINED = "untrained"
"""Stands for the step where the policy has no weights but its first, random ones."""
_NAME = re.compile(
    r"(?:(?P<rollout>warmup|train)|(?P<pass>eval-(?P<suite>[a-z0-9_]+)-[a-z]+))-(?P<step>untrained|0|[1-9][0-9]*)\.parquet"
)


class _Stage(IntEnum):
    """Of a run, in order."""

    UNTRAINED = auto()
    START = auto()
    WARMUP = auto()
    TRAINING = auto()


@dataclass(frozen=True, slots=True)
class BatchFile:
    """The file of one rollout batch, or of one pass over a suite."""

    path: Path
    purpose: str
    """`warmup`, `train` or `eval-<suite>-<mode>`."""
    step: int | None
    """Of the warm-up, from 0; of training, from 1; of a pass that which made the policy, 0 for the start, None before that."""
    suite: str | None
    """None for a rollout batch."""

    @property
    def name(self) -> str:
        """`train-12`."""
        return self.path.stem

    @property
    def at(self) -> str:
        """The step as it's written."""
        return step_name(self.step)

    @property
    def identity(self) -> dict[str, str]:
        """What the file's header says of it."""
        return {"purpose": self.purpose, "step": self.at}

    @property
    def moment(self) -> tuple[int, int, bool, str]:
        """Orders files as a run makes them: passes of the untrained policy, those of the start, the warm-up, then of each step its
        batch and the passes after it."""
        if self.step is None:
            stage = _Stage.UNTRAINED
        elif self.purpose == "warmup":
            stage = _Stage.WARMUP
        elif self.suite and self.step == 0:
            stage = _Stage.START
        else:
            stage = _Stage.TRAINING
        return stage, self.step or 0, self.suite is not None, self.purpose


def step_name(step: int | None) -> str:
    """A step as names of files and ids of trials have it; None as in `BatchFile`."""
    return UNTRAINED if step is None else str(step)


def of_untrained(identity: Mapping[str, str]) -> bool:
    """Whether the untrained policy sampled the trials of a file that says this of itself. Its version is 0, as the start's is."""
    return identity.get("step") == UNTRAINED


def batch_path(run: Path, purpose: str, step: int | None) -> Path:
    """The file of a batch or a pass in the folder of a run."""
    return run / FOLDER / f"{purpose}-{step_name(step)}.parquet"


def batch_file(path: Path) -> BatchFile | None:
    """The batch or the pass whose place a path is; None for any other path."""
    name = _NAME.fullmatch(path.name)
    if name is None or path.absolute().parent.name != FOLDER or (name["rollout"] and name["step"] == UNTRAINED):
        return None
    step = None if name["step"] == UNTRAINED else int(name["step"])
    return BatchFile(path, name["rollout"] or name["pass"], step, name["suite"])


def batch_files(run: Path) -> list[BatchFile]:
    """Those that are there, in the order in which a run makes them."""
    found = [batch_file(path) for path in (run / FOLDER).glob("*.parquet") if path.is_file()]
    return sorted((file for file in found if file), key=lambda each: each.moment)


def strangers(run: Path) -> dict[Path, str]:
    """What lies among them and isn't one of them, hidden files aside, and why; nobody reads it."""
    folder, found = run / FOLDER, {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name[0] != "." and batch_file(path) is None:
            found[path] = "isn't named as a batch or an evaluation is"
        elif path.name[0] != "." and not path.is_file() and os.path.lexists(path):  # one that is gone was pruned meanwhile
            found[path] = "isn't a file"
    return found

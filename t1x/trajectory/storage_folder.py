"""Where the stored trials of a run are: `trajectories/<purpose>-<step>.parquet` in its folder."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = "trajectories"
_NAME = re.compile(r"(warmup|train)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class BatchFile:
    """The file of one rollout batch."""

    path: Path
    purpose: str
    """`warmup` or `train`."""
    step: int
    """Of the warm-up, from 0; of training, from 1."""

    @property
    def name(self) -> str:
        """`train-12`."""
        return self.path.stem


def batch_path(run: Path, purpose: str, step: int) -> Path:
    """The file of a batch in the folder of a run."""
    return run / FOLDER / f"{purpose}-{step}.parquet"


def batch_files(run: Path) -> list[BatchFile]:
    """Those that are there, in the order in which a run makes them."""
    found = [(path, _NAME.fullmatch(path.name)) for path in (run / FOLDER).glob("*.parquet")]
    files = [BatchFile(path, name[1], int(name[2])) for path, name in found if name]
    return sorted(files, key=lambda each: (each.purpose != "warmup", each.step))

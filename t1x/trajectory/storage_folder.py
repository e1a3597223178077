"""Where the stored trials of a run are: `trajectories/<purpose>-<step>.parquet` in its folder."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = "trajectories"
_NAME = re.compile(r"(warmup|train)-(0|[1-9][0-9]*)\.parquet")


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

    @property
    def identity(self) -> dict[str, str]:
        """What the file's header says of it."""
        return {"purpose": self.purpose, "step": str(self.step)}


def batch_path(run: Path, purpose: str, step: int) -> Path:
    """The file of a batch in the folder of a run."""
    return run / FOLDER / f"{purpose}-{step}.parquet"


def batch_file(path: Path) -> BatchFile | None:
    """The batch whose place a path is; None for any other path."""
    name = _NAME.fullmatch(path.name)
    return BatchFile(path, name[1], int(name[2])) if name and path.absolute().parent.name == FOLDER else None


def batch_files(run: Path) -> list[BatchFile]:
    """Those that are there, in the order in which a run makes them."""
    found = [batch_file(path) for path in (run / FOLDER).glob("*.parquet") if path.is_file()]
    return sorted((file for file in found if file), key=lambda each: (each.purpose != "warmup", each.step))

"""Keeping what happened in a run.

Invariants:
- a metric has one value a step and its steps go forward; a missing value is missing, never 0 and never NaN;
- a bad value or name is refused before anything of its step is kept;
- a run that goes on from a checkpoint is the same run, as if what came after the checkpoint had not been;
- however the block ends, the run is closed with its status, and every metric is in the run folder's `log.jsonl`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from t1x.config import Component


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a run goes on."""

    id: str | None
    """In the tracking store; None where it never came that far."""
    log_bytes: int
    """Of its `log.jsonl`, how much it had written then (`TrackedRun.position`); the rest of it is dropped."""


class TrackedRun(AbstractContextManager["TrackedRun"], Protocol):
    """A run that is being tracked; a context manager. It ends as FINISHED, KILLED (Ctrl-C, SIGTERM,
    SIGHUP, cancelled) or FAILED."""

    id: str
    """The run's name in the tracking store; set when the block is entered."""
    view: str
    """How a user looks at the runs of the store: a command or an address."""

    @property
    def position(self) -> int:
        """Bytes of `log.jsonl` so far, all on disk: what a checkpoint keeps for `Resumed`."""

    def __enter__(self) -> Self: ...

    def params(self, config: Mapping[str, object]) -> None:
        """Keeps a resolved configuration; nested mappings become dotted names. Once a run, and again where it goes on; a
        store that can't change a parameter keeps the new values beside the first ones. Raises `ValueError` for a bad name."""

    def metrics(self, values: Mapping[str, float | None], step: int) -> None:
        """Keeps one step's metrics; None is a missing value. Raises `ValueError` naming the metric that isn't a finite number, has
        a name that the store can't take, or was already kept for this or a later step."""

    def artifact(self, path: Path, folder: str = "") -> None:
        """Keeps a copy of a file or folder, under `folder` of the run's artifacts. Raises `ValueError` when it isn't there."""

    def tags(self, values: Mapping[str, str]) -> None:
        """Sets searchable marks of the run; the last value wins."""


class ParentRun(Protocol):
    """A run that others are grouped under, while it is open."""

    id: str
    """For the `parent` of the others."""
    failed: bool
    """False at first. Set where one of the others failed: it ends as FAILED then."""

    def artifact(self, path: Path, folder: str = "") -> None:
        """Keeps a copy of a file or folder, under `folder` of the run's artifacts. Raises `ValueError` when it isn't there."""


class Tracking(Component):
    """Where runs are recorded."""

    def build(self, folder: Path, name: str, resumed: Resumed | None = None) -> TrackedRun:
        """The run called `name`, whose own folder (`runs/<name>`) is `folder`; the one that was there, where it is `resumed`.
        Nothing happens before the block is entered; entering raises `ValueError` when the store or the folder can't be written, and
        warns where the store has lost the run, which gets a new one then with all that the log holds."""
        raise NotImplementedError

    def parent_run(self, folder: Path, name: str, tags: Mapping[str, str]) -> AbstractContextManager[ParentRun | None]:
        """A run that others are grouped under, called `name`; its own folder `folder` lies in the runs folder. The one that was
        made for this folder before is opened again; it's closed with its status. None where runs aren't grouped."""
        return nullcontext()

    def forget(self, folder: Path, run_id: str) -> bool:
        """Deletes the run of this folder from the store; false where the store hasn't it. Raises `ValueError` where the store can't
        be reached."""
        return False

    def grouped(self, parent: str | None, tags: Mapping[str, str]) -> "Tracking":
        """The same store, for a run that is shown under the run `parent` and has further tags, as far as there are such."""
        return self

    def ungrouped(self) -> "Tracking":
        """The same store, for a run of its own."""
        return self

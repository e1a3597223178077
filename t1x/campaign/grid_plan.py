"""What a grid still has to do, and how long that may take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from statistics import fmean

from t1x.campaign.identity import Prerequisite
from t1x.campaign.record import Run, Status, latest, runs
from t1x.campaign.resolve_cells import CellExperiment, Cells
from t1x.campaign.starts import is_kept
from t1x.config import ConfigError, Role, Root, load
from t1x.config.digest import digest, leaves

NEW = "new"


@dataclass(frozen=True, slots=True)
class Guess:
    """How long something may take."""

    seconds: float
    how: str
    """From what that was judged."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell, as far as it has come."""

    experiment: CellExperiment
    run: Run | None
    """Its finished run, or the newest that isn't; None where it was never begun."""
    guess: Guess | None
    """None where there is nothing to go by."""

    @property
    def state(self) -> str:
        """`finished`, `running`, `failed`, `killed` or `new`."""
        return self.run.status.value if self.run else NEW

    @property
    def finished(self) -> bool:
        return self.run is not None and self.run.status is Status.FINISHED


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """A campaign that cells start from, or that such a one does, and that hasn't been run."""

    start: Prerequisite
    guess: Guess | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a grid has done and still has to do."""

    starts: tuple[PlannedStart, ...]
    """In the order in which they can be run."""
    cells: tuple[PlannedCell, ...]
    """In the grid's order, finished ones too."""

    @property
    def due(self) -> list[PlannedCell]:
        """The cells that would be run."""
        return [cell for cell in self.cells if not cell.finished]


def plan(cells: Cells, selected: Sequence[CellExperiment]) -> Plan:
    """The plan for some of a grid's cells, by the records in its runs folder."""
    known = _Known(runs(cells.grid.runs))
    planned = [PlannedCell(each, known.run(each.digest), known.guess(each.root, each.digest)) for each in selected]
    starts: dict[str, PlannedStart] = {}
    for cell in planned:
        for start in () if cell.finished else known.lacking(cell.experiment.starts):
            starts.setdefault(start.run_digest, PlannedStart(start, known.guess(start.campaign, start.run_digest)))
    return Plan(tuple(starts.values()), tuple(planned))


def total(plan: Plan, jobs: int) -> tuple[float, bool]:
    """(seconds, whether that is all): the starts one after the other, then the cells with `jobs` of them at a time. What nothing
    is known of isn't in it."""
    guesses = [*(start.guess for start in plan.starts), *(cell.guess for cell in plan.due)]
    free = [0.0] * jobs
    heapify(free)
    for cell in plan.due:
        if cell.guess:
            heapreplace(free, free[0] + cell.guess.seconds)
    return sum(start.guess.seconds for start in plan.starts if start.guess) + max(free), None not in guesses


class _Known:
    """What the runs of a runs folder tell."""

    def __init__(self, found: Sequence[Run]) -> None:
        self._found = found
        self._by_digest = latest(found)
        self._by_sizes: dict[str, list[float]] | None = None

    def run(self, run_digest: str) -> Run | None:
        """The finished run of a digest, else the newest."""
        return self._by_digest.get(run_digest)

    def lacking(self, starts: Iterable[Prerequisite]) -> Iterator[Prerequisite]:
        """The starts whose weights aren't kept, each after those that it needs itself."""
        for start in starts:
            run = self.run(start.run_digest)
            if run is None or not is_kept(run, start.campaign):
                yield from self.lacking(start.prerequisites)
                yield start

    def guess(self, root: Root, run_digest: str) -> Guess | None:
        run = self.run(run_digest)
        if run is not None and run.status is Status.FINISHED:
            return Guess(run.seconds, "this cell's finished run")
        if self._by_sizes is None:
            self._by_sizes = self._sizes()
        seconds = self._by_sizes.get(sizes_digest(root), [])
        if not seconds:
            return None
        how = f"mean of {len(seconds)} finished runs" if len(seconds) > 1 else "a finished run"
        return Guess(fmean(seconds), f"{how} of these sizes")

    def _sizes(self) -> dict[str, list[float]]:
        """Seconds of every finished run, by the digest of its sizes."""
        seconds: dict[str, list[float]] = {}
        for run in (run for run in self._found if run.status is Status.FINISHED):
            try:
                root = load(run.folder / "config.gin").root
            except (ConfigError, FileNotFoundError):
                continue  # written by another version of t1x, or cleaned up: it has nothing to tell
            seconds.setdefault(sizes_digest(root), []).append(run.seconds)
        return seconds


def sizes_digest(root: Root) -> str:
    """The same for two experiments of one kind and one base with the same sizes: what takes about as long."""
    return digest([type(root).__name__, {path: value for path, value, _, role in leaves(root) if role is Role.SCALE}])

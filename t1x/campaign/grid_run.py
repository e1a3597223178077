"""Running a grid: what its cells start from, then every cell that hasn't finished, each in a process of its own.

Invariants:
- a cell whose run digest has a finished run in the runs folder isn't run again; one that failed or was killed is gone on with;
- one process runs a grid at a time;
- no cell's end, of whatever kind, keeps another from being run.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from t1x.campaign.children import Ended, Job, run_all
from t1x.campaign.experiment import Experiment
from t1x.campaign.grid_plan import Plan, PlannedCell, PlannedStart
from t1x.campaign.grid_report import title, write_grid_report
from t1x.campaign.grid_tables import headlines
from t1x.campaign.identity import Prerequisite, with_name
from t1x.campaign.lock import held
from t1x.campaign.progress import ProgressReport
from t1x.campaign.record import Run, Status, find_finished, latest, runs
from t1x.campaign.resolve_cells import Cells
from t1x.campaign.resume import interrupted
from t1x.campaign.starts import provide
from t1x.campaign.until_done import until_done
from t1x.campaign.wording import duration, with_error
from t1x.config import dump
from t1x.config.requirements import NotHere, missing
from t1x.tracking.protocol import ParentRun
from t1x.tracking.signals import like_ctrl_c

LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell, or a campaign that cells start from, that wasn't run to its end."""

    name: str
    reason: str
    log: Path


class StartFailed(Exception):
    """A campaign that cells start from failed. The message says how."""


def run_grid(cells: Cells, plan: Plan, jobs: int, console: Console) -> list[Failure]:
    """Runs what the plan has due, `jobs` cells at a time, and writes the report; returns the cells that failed. Raises `NotHere`
    where they can't run on this machine, `ValueError` where another process runs this grid or its folder can't be written,
    `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP (every process has ended then)."""
    _require(plan)
    with like_ctrl_c(), _alone(cells.folder), ProgressReport(console) as progress:
        return _GridRun(cells, plan, jobs, progress).run()


def _require(plan: Plan) -> None:
    """Names all that any of the runs lacks here."""
    roots = [*(start.start.campaign for start in plan.starts), *(cell.experiment.root for cell in plan.due)]
    lacks = {lack.line: lack for root in roots for lack in missing(root)}
    if lacks:
        raise NotHere(list(lacks.values()), roots[0].site)


class _GridRun:
    def __init__(self, cells: Cells, plan: Plan, jobs: int, progress: ProgressReport) -> None:
        self._cells, self._plan, self._jobs, self._progress = cells, plan, jobs, progress
        self._failures: list[Failure] = []
        self._without: dict[str, Failure] = {}
        """Digest of a start that failed to how."""
        self._began = time.time()

    def run(self) -> list[Failure]:
        with self._parent() as parent:
            try:
                self._run(parent)
            except KeyboardInterrupt:
                self._progress.say(f"{self._standing()}; run the same command to go on")
                raise
            finally:
                self._report(parent)
        return self._failures

    def _run(self, parent: ParentRun | None) -> None:
        for cell in self._plan.cells:
            if cell.finished:
                self._progress.say(f"{cell.experiment.cell.name}: finished before, in {_folder(cell.run)}")
        for start in self._plan.starts:
            self._run_start(start)
        due = [cell for cell in self._plan.due if self._can_start(cell)]
        self._run_cells({self._job(cell, parent): cell for cell in due})

    def _report(self, parent: ParentRun | None) -> None:
        files = write_grid_report(self._cells)
        if files:
            self._progress.say(f"report: {files[0]}")
        if parent is not None:
            parent.failed = bool(self._failures)
            for file in files:
                parent.artifact(file, "report")

    def _run_cells(self, by_job: Mapping[Job, PlannedCell]) -> None:
        with self._progress.phase("cells", len(self._plan.cells)) as phase:
            for _ in range(len(self._plan.cells) - len(by_job)):
                phase.advance()

            def ended(one: Ended) -> None:
                self._tell(one, by_job[one.job])
                phase.advance()

            until_done(run_all(list(by_job), self._jobs, ended))

    def _parent(self) -> AbstractContextManager[ParentRun | None]:
        """The tracked run that the cells are grouped under, where some are to run and the tracking has such."""
        due = self._plan.due
        if not due:
            return nullcontext()
        cells, tracking = self._cells, due[0].experiment.root.tracking
        return tracking.parent_run(cells.folder, cells.folder.name, {"grid": cells.name, "grid.digest": cells.digest})

    def _run_start(self, planned: PlannedStart) -> None:
        """Runs a start, unless one that it needs itself has failed."""
        if failed := self._failed_below(planned.start.prerequisites):
            reason = f"not run, because its start {failed.name} failed"
            self._without[planned.start.run_digest] = Failure(planned.start.experiment, reason, failed.log)
            return

        def run(start: Prerequisite) -> Run:
            name, campaign = f"{start.file.stem}-{start.run_digest[:8]}", with_name(start.campaign, start.file)
            job = self._write("starts", name, campaign, start.run_digest)
            last: list[Ended] = []
            until_done(run_all([job], 1, last.append))
            found = find_finished(self._cells.grid.runs, start.run_digest)
            if last[0].code or found is None:
                self._without[start.run_digest] = Failure(start.experiment, last[0].reason, job.log)
                raise StartFailed
            return found

        try:
            provide((planned.start,), run, self._progress.say)
        except StartFailed:
            failure = self._without[planned.start.run_digest]
            self._progress.say(f"start {failure.name}: failed: {failure.reason}; its log is {failure.log}")

    def _can_start(self, cell: PlannedCell) -> bool:
        failed = self._failed_below(cell.experiment.starts)
        if failed is not None:
            reason = f"not run, because its start {failed.name} failed"
            self._failures.append(Failure(cell.experiment.cell.name, reason, failed.log))
        return failed is None

    def _failed_below(self, starts: Sequence[Prerequisite]) -> Failure | None:
        return next((self._without[start.run_digest] for start in starts if start.run_digest in self._without), None)

    def _job(self, planned: PlannedCell, parent: ParentRun | None) -> Job:
        cell, root = planned.experiment.cell, planned.experiment.root
        axes = {f"axis.{axis}": level for axis, level in cell.levels}
        tags = {"grid": self._cells.name, **axes, "seed": str(cell.seed)}
        tracking = root.tracking.grouped(parent.id if parent else None, tags)
        placed = root.model_copy(update={"tracking": tracking})
        return self._write("cells", cell.file_name, placed, planned.experiment.digest)

    def _write(self, folder: str, name: str, root: Experiment, run_digest: str) -> Job:
        config = self._cells.folder / folder / f"{name}.gin"
        config.parent.mkdir(exist_ok=True)
        config.write_text(dump(root), encoding="utf-8")
        return Job(name, config, resume=interrupted(root.runs, run_digest) is not None)

    def _tell(self, ended: Ended, cell: PlannedCell) -> None:
        name = cell.experiment.cell.name
        run = find_finished(self._cells.grid.runs, cell.experiment.digest)
        if ended.code == 0 and run is not None:
            self._progress.say(f"{name}: {headline(run)}, {duration(run.seconds)}")
            return
        failure = Failure(name, ended.reason, ended.job.log)
        self._failures.append(failure)
        self._progress.say(f"{name}: failed after {duration(ended.seconds)}: {failure.reason}; its log is {failure.log}")

    def _standing(self) -> str:
        """How many of the cells have finished and what became of the others: `1 of 4 cells finished, 1 interrupted, 2 to do`."""
        found = latest(runs(self._cells.grid.runs))
        newest = [found.get(cell.experiment.digest) for cell in self._plan.cells]
        counts = {
            "finished": sum(run is not None and run.status is Status.FINISHED for run in newest),
            "failed": len(self._failures),
            "interrupted": sum(run is not None and run.status is Status.KILLED and run.started >= self._began for run in newest),
        }
        counts["to do"] = len(newest) - sum(counts.values())
        others = [f"{count} {what}" for what, count in counts.items() if count and what != "finished"]
        return ", ".join([f"{counts['finished']} of {len(newest)} cells finished", *others])


def headline(run: Run) -> str:
    """What a run's suites are judged by, in a line."""
    values = [(title(measure), run.scores[measure[0]][measure[1]]) for measure in headlines(run)]
    scores = [f"{name} {with_error(value.mean, math.nan if value.se is None else value.se)}" for name, value in values]
    return "; ".join(scores) or "no scores"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the grid's folder and holds its lock."""

    def busy(process: str) -> None:
        raise ValueError(f"process {process} runs this grid already (it holds {folder / LOCK}); wait for it or stop it")

    with held(folder / LOCK, busy, "Grid.runs"):
        yield


def _folder(run: Run | None) -> str:
    return str(run.folder) if run else ""

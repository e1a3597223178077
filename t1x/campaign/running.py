"""A run: its folder, its tracking, its record, and what is said at the end, however it ends.

Invariant: when it returns or raises, no sandbox is left, the tracked run is closed with its status, and the record says how it
ended.
"""

import asyncio
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from t1x.campaign.assembly import Assembly, TrainingAssembly
from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_store import Checkpoint, CheckpointStore
from t1x.campaign.evaluation import Evaluation
from t1x.campaign.evaluation_run import run_evaluation
from t1x.campaign.experiment import Experiment
from t1x.campaign.identity import Prerequisite, run_digest_with
from t1x.campaign.loop import check_fits, restore_outcome, run_loop
from t1x.campaign.outcome import Outcome, Score, ScoreJournal
from t1x.campaign.progress import ProgressReport
from t1x.campaign.record import Measured, Run, Status, alive, stored_run
from t1x.campaign.report import summary, write_report
from t1x.campaign.resume import Found
from t1x.campaign.run_folder import new_folder
from t1x.campaign.trajectory_store import TrajectoryStore
from t1x.config import dump
from t1x.config.blame import users_place
from t1x.config.digest import study_digest
from t1x.config.mapping import to_mapping
from t1x.config.places import shown
from t1x.rollout.streams import stream
from t1x.sandbox.leases import Leases
from t1x.tasks.pool import TaskPool
from t1x.tracking.protocol import Resumed, TrackedRun

SHOWN = 8
"""Digits of the run digest in a folder's name."""


@dataclass(frozen=True, slots=True)
class Pools:
    """The tasks of an experiment."""

    training: TaskPool | None
    """None where nothing is trained."""
    suites: Mapping[str, TaskPool]
    """By the suite's name."""


async def run_tracked(
    experiment: Experiment,
    file: Path | None,
    needed: Sequence[Prerequisite],
    starts: Mapping[str, Path],
    pools: Pools,
    console: Console,
    inside: bool,
    found: Found | None,
) -> Run:
    """Runs an experiment whose starts are there; `inside` is whether it's one of another's starts itself, `found` the run that it
    goes on with. Raises what ends it early; the record is on disk then, unless the run never began."""
    digest = found.digest if found else run_digest_with(experiment, needed)
    host = experiment.sandbox.build(deterministic=experiment.deterministic)
    try:
        folder = found.run.folder if found else new_folder(experiment.runs, f"{experiment.name}-{digest[:SHOWN]}-{experiment.seed}")
        record = Run(
            folder=folder,
            name=experiment.name,
            kind=type(experiment).__name__,
            run_digest=digest,
            study_digest=study_digest(experiment),
            seed=experiment.seed,
            site=experiment.site,
            experiment=shown(file) if file is not None else "",
            smoke=experiment.smoke,
        )
        if found is not None:
            before = found.run
            record = replace(record, started=before.started, seconds=before.seconds, resumed=before.resumed + 1)
            record = replace(record, tracking_id=before.tracking_id, checkpoint=before.checkpoint, scores=before.scores)
            record = replace(record, mixed=before.mixed or bool(found.changes))
        with alive(folder):
            if found is not None and stored_run(folder).resumed != found.run.resumed:
                raise ValueError(f"another process has gone on with {folder} meanwhile; run the same command again")
            return await _Running(record, experiment, host, starts, pools, console, inside).run(found)
    finally:
        await host.close()


class _Running:
    """A run that has a folder."""

    def __init__(
        self,
        record: Run,
        experiment: Experiment,
        host: Leases,
        starts: Mapping[str, Path],
        pools: Pools,
        console: Console,
        inside: bool,
    ) -> None:
        self._record, self._experiment, self._host = record, experiment, host
        self._starts, self._pools, self._console, self._inside = starts, pools, console, inside
        self._outcome = Outcome()
        self._began = time.monotonic()
        self._store: CheckpointStore | None = None
        if isinstance(experiment, Campaign):
            folder, keeps = record.folder / "checkpoints", experiment.algorithm.keeps
            self._store = CheckpointStore(folder, experiment.checkpointing, keeps, self._say)

    async def run(self, found: Found | None) -> Run:
        folder, experiment = self._record.folder, self._experiment
        restored, since = (None, []) if found is None else self._restore(found)
        (folder / "config.gin").write_text(dump(experiment), encoding="utf-8")
        self._record.save()
        if found is None:
            self._say(f"{folder.name}: {self._record.experiment or 'an experiment built in Python'}")
        begun = found is not None
        log_bytes = restored.state["standing"]["log_bytes"] if restored else 0
        resumed = None if found is None else Resumed(found.run.tracking_id, log_bytes)
        try:
            with experiment.tracking.build(folder, folder.name, resumed) as tracked, ProgressReport(self._console) as progress:
                begun = True
                self._record = replace(self._record, tracking_id=tracked.id).save()
                tracked.tags(_tags(self._record))
                tracked.params(to_mapping(experiment))
                tracked.artifact(folder / "config.gin")
                for score in since:
                    tracked.metrics(*score.logged)
                try:
                    await self._work(tracked, progress, restored)
                finally:
                    for path in write_report(folder / "report", self._outcome, folder.name):
                        tracked.artifact(path, "report")
        except BaseException as error:
            if begun:
                self._end(error)
                self._say(_stopped(folder, self._outcome, error))
            else:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        self._end(None)
        if self._outcome.scores:
            self._console.print(summary(self._outcome))
        self._say(_finished(folder, self._outcome))
        if not self._inside:
            self._say(f"compare runs: {tracked.view}")
        return self._record

    def _restore(self, found: Found) -> tuple[Checkpoint | None, list[Score]]:
        """The checkpoint to go on from, None for the beginning, and the scores that were made since; says which it is."""
        folder = self._record.folder
        checkpoint = self._store.newest() if self._store else None
        if checkpoint is not None and isinstance(self._experiment, Campaign):
            check_fits(self._experiment, checkpoint)
        journal = ScoreJournal(folder)
        since = restore_outcome(self._outcome, checkpoint, journal.read())
        journal.cut(self._outcome.scores)
        self._outcome.checkpoint = self._store.newest_weights() if self._store else None
        from_where = f"from {checkpoint.name}" if checkpoint else "from its beginning, since there is no checkpoint to go on from"
        if isinstance(self._experiment, Evaluation):
            from_where = f"with {len(since)} passes made"
        self._say(f"{folder.name} goes on {from_where}")
        log = folder / "log.jsonl"
        if checkpoint is not None and (log.stat().st_size if log.is_file() else 0) < checkpoint.state["standing"]["log_bytes"]:
            self._say(f"  {log} has lost lines since {checkpoint.name}; the metrics in them are in the tracking store only")
        for change in found.changes:
            self._say(f"  changed: {change}")
        if found.changes:
            (folder / "config.gin").replace(folder / f"config.before-{self._record.resumed}.gin")
        return checkpoint, since

    async def _work(self, tracked: TrackedRun, progress: ProgressReport, restored: Checkpoint | None) -> None:
        experiment = self._experiment
        stored = TrajectoryStore(self._record.folder, experiment.trajectories, self._record.identity, progress.say)
        shared: dict[str, Any] = {
            "experiment": experiment,
            "tokenizer": experiment.tokenizer.build(),
            "host": self._host,
            "suites": self._pools.suites,
            "policy": experiment.model.build(stream(experiment.seed, "policy") >> 1),
            "tracked": tracked,
            "journal": ScoreJournal(self._record.folder),
            "progress": progress,
            "stored": stored,
            "starts": self._starts,
        }
        try:
            if isinstance(experiment, Campaign):
                assert self._pools.training is not None, "a campaign has a pool"
                steps = experiment.training_steps(len(self._pools.training))
                self._record = replace(self._record, steps=steps).save()
                await self._train(TrainingAssembly(**shared, pool=self._pools.training, steps=steps), restored)
            else:
                await run_evaluation(Assembly(**shared), self._outcome)
        finally:
            stored.close()

    async def _train(self, assembly: TrainingAssembly, restored: Checkpoint | None) -> None:
        assert self._store is not None, "a campaign has checkpoints"
        if restored is None:
            assembly.stored.go_on(0, 0, None)
        try:
            await run_loop(assembly, self._store, self._outcome, restored)
        finally:
            self._store.close()
            self._outcome.checkpoint = self._store.newest_weights()  # one that couldn't be written isn't

    def _end(self, error: BaseException | None) -> None:
        checkpoint = self._outcome.checkpoint
        status = Status.FINISHED if error is None else Status.KILLED if _is_interruption(error) else Status.FAILED
        said = f"{type(error).__name__}: {error}" if status is Status.FAILED else None
        ended = self._record.ended(status, time.monotonic() - self._began, said)
        kept = str(checkpoint.relative_to(self._record.folder)) if checkpoint else None
        self._record = replace(ended, checkpoint=kept, scores=_final(self._outcome)).save()

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


def _tags(record: Run) -> dict[str, str]:
    return {
        "experiment": record.name,
        "file": record.experiment,
        "site": record.site or "",
        "seed": str(record.seed),
        "run_digest": record.run_digest,
        "study_digest": record.study_digest,
        "smoke": str(record.smoke).lower(),
    }


def _is_interruption(error: BaseException) -> bool:
    return isinstance(error, KeyboardInterrupt | asyncio.CancelledError)


def _final(outcome: Outcome) -> dict[str, dict[str, Measured]]:
    """Each suite's measures on the last policy that it was run on, named as in the tracking store."""
    found: dict[str, dict[str, Measured]] = {}
    for score in outcome.scores:
        for name in {score.measure: None, "resolved_rate": None, "partial_credit": None}:
            if name in score.metrics:
                measured = Measured(score.metrics[name], score.metrics.get(f"{name}_se"), int(score.metrics["tasks"]))
                found.setdefault(score.suite, {})[f"{name}{score.ending}"] = measured
    return found


def _stopped(folder: Path, outcome: Outcome, error: BaseException) -> str:
    made = f"{len(outcome.steps)} training steps were made" if outcome.steps else "no training step was made"
    weights = f"; the newest weights that were kept are in {outcome.checkpoint}" if outcome.checkpoint else ""
    theirs = isinstance(error, ValueError) or users_place(error) is not None
    advice = "Mend what stopped it and run the same command" if theirs else "Run the same command"
    done = outcome.steps or outcome.scores or outcome.checkpoint
    again = "again" if theirs and not done else "with --resume to go on"  # which takes no experiment that was mended
    return f"stopped: {made}{weights}. Metrics so far: {folder / 'log.jsonl'}. {advice} {again}."


def _finished(folder: Path, outcome: Outcome) -> str:
    weights = [f"weights: {folder / 'checkpoints'}"] if outcome.checkpoint else []
    return "\n".join([f"report: {folder / 'report'}", *weights])

"""A run: its folder, its tracking, its record, and what is said at the end, however it ends.

Invariant: when it returns or raises, no sandbox is left, the tracked run is closed with its status, and the record says how it
ended.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from t1x.campaign.assembly import Assembly, TrainingAssembly
from t1x.campaign.campaign import Campaign
from t1x.campaign.evaluation_run import run_evaluation
from t1x.campaign.experiment import Experiment
from t1x.campaign.identity import Prerequisite, run_digest_with
from t1x.campaign.loop import run_loop
from t1x.campaign.outcome import Outcome
from t1x.campaign.progress import ProgressReport
from t1x.campaign.record import Measured, Run, Status, alive
from t1x.campaign.report import summary, write_report
from t1x.campaign.run_folder import new_folder
from t1x.config import dump
from t1x.config.digest import study_digest
from t1x.config.mapping import to_mapping
from t1x.config.places import shown
from t1x.rollout.streams import stream
from t1x.sandbox.protocol import SandboxHost
from t1x.tasks.pool import TaskPool
from t1x.tracking.protocol import TrackedRun

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
) -> Run:
    """Runs an experiment whose starts are there; `inside` is whether it's one of another's starts itself. Raises what ends it
    early; the record is on disk then, unless the run never began."""
    digest = run_digest_with(experiment, needed)
    host = experiment.sandbox.build(deterministic=experiment.deterministic)
    try:
        folder = new_folder(experiment.runs, f"{experiment.name}-{digest[:SHOWN]}-{experiment.seed}")
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
        with alive(folder):
            return await _Running(record, experiment, host, starts, pools, console, inside).run()
    finally:
        await host.close()


class _Running:
    """A run that has a folder."""

    def __init__(
        self,
        record: Run,
        experiment: Experiment,
        host: SandboxHost,
        starts: Mapping[str, Path],
        pools: Pools,
        console: Console,
        inside: bool,
    ) -> None:
        self._record, self._experiment, self._host = record, experiment, host
        self._starts, self._pools, self._console, self._inside = starts, pools, console, inside
        self._outcome = Outcome()

    async def run(self) -> Run:
        folder, experiment = self._record.folder, self._experiment
        (folder / "config.gin").write_text(dump(experiment), encoding="utf-8")
        self._record.save()
        self._say(f"{folder.name}: {self._record.experiment or 'an experiment built in Python'}")
        begun = False
        try:
            with experiment.tracking.build(folder, folder.name) as tracked, ProgressReport(self._console) as progress:
                begun = True
                self._record = replace(self._record, tracking_id=tracked.id).save()
                tracked.tags(_tags(self._record))
                tracked.params(to_mapping(experiment))
                tracked.artifact(folder / "config.gin")
                try:
                    await self._work(tracked, progress)
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

    async def _work(self, tracked: TrackedRun, progress: ProgressReport) -> None:
        experiment = self._experiment
        shared: dict[str, Any] = {
            "experiment": experiment,
            "tokenizer": experiment.tokenizer.build(),
            "host": self._host,
            "suites": self._pools.suites,
            "policy": experiment.model.build(stream(experiment.seed, "policy") >> 1),
            "tracked": tracked,
            "progress": progress,
            "starts": self._starts,
        }
        if isinstance(experiment, Campaign):
            assert self._pools.training is not None, "a campaign has a pool"
            steps = experiment.training_steps(len(self._pools.training))
            self._record = replace(self._record, steps=steps).save()
            assembly = TrainingAssembly(**shared, pool=self._pools.training, steps=steps)
            await run_loop(assembly, self._record.folder, self._outcome)
        else:
            await run_evaluation(Assembly(**shared), self._outcome)

    def _end(self, error: BaseException | None) -> None:
        checkpoint = self._outcome.checkpoint
        status = Status.FINISHED if error is None else Status.KILLED if _is_interruption(error) else Status.FAILED
        said = f"{type(error).__name__}: {error}" if status is Status.FAILED else None
        ended = self._record.ended(status, said)
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
    advice = "Mend what stopped it and run the same command" if isinstance(error, ValueError) else "Run the same command"
    return f"stopped: {made}{weights}. Metrics so far: {folder / 'log.jsonl'}. {advice} to begin anew."


def _finished(folder: Path, outcome: Outcome) -> str:
    weights = [f"weights: {folder / 'checkpoints'}"] if outcome.checkpoint else []
    return "\n".join([f"report: {folder / 'report'}", *weights])

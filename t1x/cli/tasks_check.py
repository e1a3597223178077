"""`t1x tasks check`, from the tasks to the exit code."""

import os
import time
from pathlib import Path

from rich.console import Console

from t1x.campaign.deadlines import with_deadlines
from t1x.campaign.progress import ProgressReport
from t1x.campaign.wording import duration
from t1x.cli.pool_target import PoolTarget
from t1x.cli.tasks_findings import print_findings
from t1x.config.requirements import NotHere, missing
from t1x.curation.candidates import candidates
from t1x.curation.check import Check
from t1x.curation.conditions import check_settings
from t1x.curation.meaning import grouped
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.folder import is_task
from t1x.tasks.manifest import Entry, Manifest


def check_pool(target: PoolTarget, repeats: int, jobs: int | None, out: Path | None, fresh: bool) -> bool:
    """Checks a pool and prints what it found; whether that is anything. Raises `NotHere` for a host that lacks something."""
    console = Console()
    experiment = target.experiment
    sandbox = experiment.sandbox if experiment is not None else BubblewrapSandbox()
    if lacks := [*missing(target.pool), *missing(sandbox)]:
        raise NotHere(lacks, experiment.site if experiment is not None else None)
    deadlines = (experiment.agent_deadline, experiment.verifier_deadline) if experiment is not None else (None, None)
    settings = check_settings(sandbox, repeats, *deadlines)
    with console.status(f"reading the tasks of {target.label}"):
        tasks = candidates(target.pool, lambda task: with_deadlines(task, experiment) if experiment is not None else task)
    manifest_file = out or target.manifest
    if any(is_task(parent) for parent in manifest_file.resolve().parents):
        raise ValueError(f"{manifest_file}: would lie in a task and change it; name a manifest elsewhere with --out")
    with Check(tasks, manifest_file, settings, fresh) as check:
        due, before = len(check.due), len(check.known)
        if before:
            console.print(f"{before} of {len(tasks)} tasks were checked before and haven't changed", highlight=False)
        wrong = 0
        started = time.monotonic()
        with ProgressReport(console) as report, report.phase(f"checking {target.label}", before + due, before) as phase:

            def advance(name: str, entry: Entry) -> None:
                nonlocal wrong
                wrong += bool(entry.findings)
                phase.advance(f"{wrong} with findings" if wrong else "")

            try:
                check.run(sandbox, jobs or len(os.sched_getaffinity(0)), advance)
            except KeyboardInterrupt:
                report.say(f"stopped; {phase.done} of {before + due} tasks are done and kept, the same command goes on")
                raise
        seconds = time.monotonic() - started
        manifest = check.finish()
    groups = grouped(manifest)
    print_findings(groups, console)
    for line in (_summary(manifest), *([_speed(due, repeats, seconds)] if due else []), f"manifest: {manifest_file}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return bool(groups)


def _summary(manifest: Manifest) -> str:
    wrong = sum(bool(entry.findings) for entry in manifest.tasks.values())
    return f"{len(manifest.tasks)} tasks: {len(manifest.tasks) - wrong} without findings, {wrong} with"


def _speed(count: int, repeats: int, seconds: float) -> str:
    times = "once" if repeats == 1 else f"{repeats} times"
    return f"{count} run in {duration(seconds)}, {count / seconds:.2g} tasks/s (each untouched, and solved {times})"

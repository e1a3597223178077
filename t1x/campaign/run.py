"""Running a campaign from a resolved file: its folder, its tracking, and what is said at the end, however it ends.

Invariant: when it returns or raises, no sandbox is left and the tracked run is closed with its status.
"""

import asyncio
import hashlib
import shutil
from pathlib import Path

import torch
from rich.console import Console

from t1x.campaign.assembly import TrainingAssembly
from t1x.campaign.campaign import Campaign
from t1x.campaign.loop import Outcome, run_loop
from t1x.campaign.progress import ProgressReport
from t1x.campaign.report import summary, write_report
from t1x.config import Resolved, dump
from t1x.config.mapping import to_mapping
from t1x.rollout.streams import stream
from t1x.sandbox.protocol import SandboxHost
from t1x.tasks.pool import TaskPool
from t1x.tracking.signals import like_ctrl_c


def run_campaign(resolved: Resolved) -> Path:
    """Runs the campaign and returns its folder. Raises `ValueError` for what the user can mend (a host without bubblewrap, an
    unwritable folder); `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP."""
    assert isinstance(resolved.root, Campaign)
    with like_ctrl_c():
        return asyncio.run(_run(resolved.root, resolved.path))


async def _run(campaign: Campaign, file: Path) -> Path:
    torch.set_num_threads(campaign.threads)
    pool = campaign.pool.build()
    suites = {suite.name: suite.pool.build() for suite in campaign.suites}
    campaign.start.check(campaign.model)
    host = campaign.sandbox.build()
    try:
        folder = new_folder(campaign, file.stem)
        await _run_in(folder, campaign, file, host, pool, suites)
    finally:
        await host.close()
    return folder


async def _run_in(
    folder: Path, campaign: Campaign, file: Path, host: SandboxHost, pool: TaskPool, suites: dict[str, TaskPool]
) -> None:
    """The tracked part of a run."""
    (folder / "config.gin").write_text(dump(campaign), encoding="utf-8")
    console = Console()
    console.print(f"{folder.name}: {file}", highlight=False, soft_wrap=True)
    outcome = Outcome()
    begun = False
    try:
        with campaign.tracking.build(folder, folder.name) as tracked, ProgressReport(console) as progress:
            begun = True
            tracked.params(to_mapping(campaign))
            tracked.artifact(folder / "config.gin")
            assembly = TrainingAssembly(
                experiment=campaign,
                tokenizer=campaign.tokenizer.build(),
                host=host,
                pool=pool,
                suites=suites,
                policy=campaign.model.build(stream(campaign.seed, "policy") >> 1),
                steps=campaign.training_steps(len(pool)),
                tracked=tracked,
                progress=progress,
            )
            try:
                await run_loop(assembly, folder, outcome)
            finally:
                for path in write_report(folder / "report", outcome, folder.name):
                    tracked.artifact(path, "report")
    except BaseException:
        if begun:
            console.print(_stopped(folder, outcome), highlight=False, soft_wrap=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if outcome.scores:
        console.print(summary(outcome))
    console.print(_finished(folder, tracked.view), highlight=False, soft_wrap=True)


def new_folder(campaign: Campaign, experiment: str) -> Path:
    """`<experiment>-<digest>-<seed>` in the runs folder, with a number behind it where that run was made before. Raises
    `ValueError` where it can't be written."""
    digest = hashlib.sha256(dump(campaign).encode()).hexdigest()[:8]
    name = f"{experiment}-{digest}-{campaign.seed}"
    try:
        campaign.runs.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = campaign.runs / (name if number == 1 else f"{name}.{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        raise ValueError(
            f"runs can't be kept in {campaign.runs}: {error.strerror}; set Campaign.runs to a folder you may write"
        ) from error


def _stopped(folder: Path, outcome: Outcome) -> str:
    made = f"{len(outcome.steps)} training steps were made" if outcome.steps else "no training step was made"
    weights = f"; the newest weights that were kept are in {outcome.checkpoint}" if outcome.checkpoint else ""
    return f"stopped: {made}{weights}. Metrics so far: {folder / 'log.jsonl'}. Run the same command to begin anew."


def _finished(folder: Path, view: str) -> str:
    return f"report: {folder / 'report'}\nweights: {folder / 'checkpoints'}\ncompare runs: {view}"

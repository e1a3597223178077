"""Running an experiment: what is checked before anything starts, and the campaigns that it starts from."""

from pathlib import Path

import torch
from rich.console import Console

from t1x.campaign.campaign import Campaign
from t1x.campaign.experiment import Experiment
from t1x.campaign.identity import Prerequisite, resolve_starts, run_digest_with, with_name
from t1x.campaign.payable import check_payable
from t1x.campaign.record import Run, Status
from t1x.campaign.resume import Found, Resume, find, interrupted
from t1x.campaign.running import Pools, run_tracked
from t1x.campaign.starts import everything, provide
from t1x.campaign.until_done import until_done
from t1x.campaign.usable import check_usable
from t1x.config import Origins
from t1x.config.requirements import require
from t1x.tracking.signals import like_ctrl_c


def run_experiment(
    experiment: Experiment, file: Path | None = None, origins: Origins | None = None, resume: Resume | None = None
) -> Run:
    """Runs what an experiment starts from, where that hasn't been, and then the experiment; gives its record. `file` and `origins`
    are where it came from. With `resume` it goes on with the newest run that was interrupted, where there is one. Raises
    `ValueError` for what the user can mend (a host without bubblewrap, an unwritable folder, a chat template with a mistake),
    `NotHere` where it can't run on this machine, `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP."""
    needed = resolve_starts(experiment, origins)
    require(experiment)
    for each in everything(needed):
        require(each.campaign)
    check_usable(experiment, origins, needed)
    experiment = with_name(experiment, file)
    found = None if resume is None else find(experiment, run_digest_with(experiment, needed), resume)
    if found is not None and found.run.status is Status.FINISHED and not found.changes:
        _say(f"{found.run.folder} has finished, there is nothing left to do; its report: {found.run.folder / 'report'}")
        return found.run
    if resume is not None and found is None:
        _say(f"no run of {experiment.name} with seed {experiment.seed} in {experiment.runs} was interrupted; a new one begins")
    with like_ctrl_c():
        return _run(experiment, file, needed, found)


def _say(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True)


def _run(
    experiment: Experiment, file: Path | None, needed: tuple[Prerequisite, ...], found: Found | None, inside: bool = False
) -> Run:
    """`found` is the run that is gone on with, `inside` whether another experiment has this one run first."""
    torch.set_num_threads(experiment.threads)
    pools = _opened(experiment)
    starts = provide(needed, _run_start, _say)
    return until_done(run_tracked(experiment, file, needed, starts, pools, Console(), inside, found))


def _run_start(start: Prerequisite) -> Run:
    """Runs a campaign that another one starts from; one that was interrupted goes on."""
    before = interrupted(start.campaign.runs, start.run_digest)
    return _run(start.campaign, start.file, start.prerequisites, Found(before) if before else None, inside=True)


def _opened(experiment: Experiment) -> Pools:
    """The tasks. Raises `ValueError` for a pool, a reward or a start that can't be."""
    training = experiment.pool.build() if isinstance(experiment, Campaign) else None
    suites = {suite.name: suite.pool.build() for suite in experiment.suites}
    check_payable(experiment, training, suites)
    experiment.start.check(experiment.model)
    if isinstance(experiment, Campaign) and experiment.critic_start is not None:
        experiment.critic_start.check(experiment.model, critic=True)
    return Pools(training, suites)

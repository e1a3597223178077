"""The campaigns that others start from: each is run once and its weights are kept.

Invariants:
- a campaign of one run digest is run once in a runs folder, however many need it and however many processes they are;
- only weights of a run that finished are used, so an interrupted one leaves nothing to go on with;
- only all of its networks are: where somebody has deleted the critic, nobody starts from the policy instead.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from t1x.campaign.campaign import Campaign
from t1x.campaign.identity import Prerequisite
from t1x.campaign.lock import held
from t1x.campaign.record import Run, Status, runs

LOCKS = ".starts"
"""Folder of the locks, in the runs folder."""

Say = Callable[[str], None]
RunFirst = Callable[[Prerequisite], Run]


def provide(prerequisites: Sequence[Prerequisite], run: RunFirst, say: Say) -> dict[str, Path]:
    """The weights' folder of each campaign, by the name that the experiment has for it; runs those that haven't been. Raises what
    `run` does."""
    return {each.experiment: _provide(each, run, say) for each in prerequisites}


def everything(prerequisites: Sequence[Prerequisite]) -> Iterator[Prerequisite]:
    """They and those that they start from themselves."""
    for each in prerequisites:
        yield each
        yield from everything(each.prerequisites)


def is_kept(run: Run, campaign: Campaign) -> bool:
    """Whether a run of a campaign has finished and the weights of all networks that it keeps are still there."""
    weights = run.weights
    if run.status is not Status.FINISHED or weights is None:
        return False
    return all(any((weights / network).glob("*.safetensors")) for network in campaign.networks)


def _provide(needed: Prerequisite, run: RunFirst, say: Say) -> Path:
    def waiting(_process: str) -> None:
        say(f"start {needed.experiment}: another process runs it; waiting")

    with held(needed.campaign.runs / LOCKS / f"{needed.run_digest}.lock", waiting, "Experiment.runs"):
        weights = _kept(needed)
        if weights is not None:
            say(f"start {needed.experiment}: using {weights}")
            return weights
        say(f"start {needed.experiment}: run first, once")
        weights = run(needed).weights
        assert weights is not None, "a campaign that finished has kept its weights"
        return weights


def _kept(needed: Prerequisite) -> Path | None:
    """The newest weights of a finished run that are still there."""
    found = (each for each in runs(needed.campaign.runs) if each.run_digest == needed.run_digest)
    return next((each.weights for each in found if is_kept(each, needed.campaign)), None)

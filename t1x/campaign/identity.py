"""What makes two runs the same: their trees, and those of the campaigns whose weights they start from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from t1x.campaign.campaign import Campaign
from t1x.campaign.experiment import Experiment
from t1x.campaign.start import CampaignStart
from t1x.config import ConfigError, Origins, Problem, Root, load
from t1x.config.digest import digest, run_digest
from t1x.config.explain import reasons
from t1x.config.names import with_article
from t1x.config.places import shown
from t1x.config.smoke import shrink
from t1x.config.walk import walk

AnyExperiment = TypeVar("AnyExperiment", bound=Experiment)
INHERITED = ("sandbox", "runtime", "concurrency", "threads", "runs")
"""What a campaign that is run for another takes over from it: where it runs, which changes no result."""


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A campaign whose weights another experiment starts from."""

    experiment: str
    """As `CampaignStart.experiment` names it."""
    campaign: Campaign
    file: Path
    prerequisites: tuple["Prerequisite", ...]
    """Its own."""
    run_digest: str


def run_digest_of(root: Root) -> str:
    """The digest of a run: of its tree alone where it starts from no other campaign. Raises what `resolve_starts` does."""
    return run_digest_with(root, resolve_starts(root))


def resolve_starts(root: Root, origins: Origins | None = None) -> tuple[Prerequisite, ...]:
    """The campaigns that a tree starts from, each once, with their own. Raises `ConfigError` with everything that is wrong in their
    files, naming where each was asked for (by `origins`, see `Resolved`)."""
    return _resolve(root, origins or {}, ())


def _resolve(root: Root, origins: Origins, inside: tuple[tuple[str, Path], ...]) -> tuple[Prerequisite, ...]:
    """`inside` are the (name, file) of the campaigns that this one is asked for by, the outermost first."""
    found: dict[str, Prerequisite] = {}
    problems: list[Problem] = []
    for path, start in walk(root, type(root).__name__):
        if not isinstance(start, CampaignStart):
            continue
        assert isinstance(root, Experiment), "only experiments hold starts"
        name, place = start.experiment, origins.get(f"{path}.experiment")
        try:
            if name not in found:
                found[name] = _prerequisite(name, root, inside)
            _check_kept(found[name].campaign, critic=path.startswith(f"{type(root).__name__}.critic_start"))
        except ConfigError as error:
            problems += [Problem(f"the campaign {name!r} can't be a start", place), *error.problems]
        except (ValueError, FileNotFoundError) as error:
            problems.append(Problem(f"the campaign {name!r} can't be a start: {error}", place))
    if problems:
        raise ConfigError(problems)
    return tuple(found.values())


def _prerequisite(experiment: str, asking: Experiment, inside: tuple[tuple[str, Path], ...]) -> Prerequisite:
    resolved = load(experiment, site=asking.site)
    file = resolved.path.resolve()
    if any(file == other for _, other in inside):
        names = [name for name, _ in inside[[other for _, other in inside].index(file) :]]
        raise ValueError(f"campaigns start from each other in a circle: {' → '.join([*names, experiment])}")
    if not isinstance(resolved.root, Campaign):
        raise ValueError(
            f"{shown(resolved.path)} describes {with_article(type(resolved.root).__name__)}; weights come from a Campaign"
        )
    campaign = shrink(resolved.root) if asking.smoke else resolved.root
    campaign = with_name(_placed_like(asking, campaign), resolved.path)
    if other := campaign.model.differences(asking.model):
        raise ValueError(f"its policy is another model: {', '.join(other)}")
    prerequisites = _resolve(campaign, resolved.origins, (*inside, (experiment, file)))
    return Prerequisite(experiment, campaign, resolved.path, prerequisites, run_digest_with(campaign, prerequisites))


def _check_kept(campaign: Campaign, critic: bool) -> None:
    if not campaign.networks & ({"policy", "critic"} if critic else {"policy"}):
        kept = ", ".join(sorted(campaign.networks))
        raise ValueError(
            f"it keeps no {'critic' if critic else 'policy'}; its algorithm {type(campaign.algorithm).__name__} keeps the {kept}"
        )


def _placed_like(asking: Experiment, campaign: Campaign) -> Campaign:
    """The campaign where the one that asks for it runs; tracked in the same store, as a run of its own."""
    values = {name: getattr(campaign, name) for name in type(campaign).model_fields}
    values |= {name: getattr(asking, name) for name in INHERITED}
    try:
        return type(campaign).model_validate(values | {"tracking": asking.tracking.ungrouped()})
    except ValidationError as error:
        raise ValueError(f"it can't run where this experiment does: {reasons(error)}") from error


def run_digest_with(root: Root, prerequisites: Sequence[Prerequisite]) -> str:
    """The digest of a run whose starts are known already."""
    own = run_digest(root)
    return digest([own, *(each.run_digest for each in prerequisites)]) if prerequisites else own


def with_name(experiment: AnyExperiment, file: Path | None) -> AnyExperiment:
    """The experiment with the name that its runs have: its own, or else the file's."""
    stem = file.stem if file is not None else type(experiment).__name__.lower()
    return experiment.model_copy(update={"name": experiment.name or re.sub(r"[^\w.-]+", "-", stem)})

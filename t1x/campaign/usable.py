"""Whether what an experiment names can be used, found out before anything is made."""

from collections.abc import Sequence

from t1x.campaign.identity import Prerequisite
from t1x.campaign.starts import everything
from t1x.config import ConfigError, Origins, Problem, Root
from t1x.config.walk import walk


def check_usable(root: Root, origins: Origins | None, needed: Sequence[Prerequisite]) -> None:
    """Raises `ConfigError` with all that the components of a tree, and of the campaigns that it starts from, say of what they name
    (`Component.unusable`)."""
    problems = [Problem(line, (origins or {}).get(path)) for path, line in _unusable(root)]
    for each in everything(needed):
        problems += [Problem(f"the campaign {each.experiment!r} can't be a start: {line}") for _, line in _unusable(each.campaign)]
    if problems:
        raise ConfigError(problems)


def _unusable(root: Root) -> list[tuple[str, str]]:
    """(path, what is wrong) in the order of the tree."""
    return [(path, line) for path, component in walk(root, type(root).__name__) for line in component.unusable()]

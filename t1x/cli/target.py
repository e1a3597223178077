"""What a command that compares experiments is given: `FILE`, `FILE@SITE`, or the folder of a run."""

from collections.abc import Sequence
from pathlib import Path

from t1x.config import Resolved, load
from t1x.config.places import find


def load_target(target: str, site: str, settings: Sequence[str]) -> Resolved:
    """Resolves a target; a site that it names itself wins over `site`. A run's folder stands for its `config.gin`."""
    file, at, own = target.rpartition("@")
    if at and find(target) is None and not Path(target).is_dir():
        target, site = file, own
    if Path(target).is_dir():
        config = Path(target) / "config.gin"
        if not config.is_file():
            raise ValueError(f"{target} is a folder without a config.gin; give the folder of a run, or a Gin file")
        target = str(config)
    return load(target, site=site, set=settings)

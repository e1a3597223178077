"""One tiny step of an experiment, kept apart from real runs."""

from dataclasses import replace

from t1x.campaign.experiment import Experiment
from t1x.config import Resolved
from t1x.config.names import with_article
from t1x.config.smoke import shrink

FOLDER = "smoke"
"""In the runs folder; a store that isn't named lies there too."""


def smoke_test(resolved: Resolved) -> Resolved:
    """The experiment cut to one tiny step. Raises `ValueError` for a root that isn't an experiment."""
    root = resolved.root
    if not isinstance(root, Experiment):
        raise ValueError(
            f"{resolved.path} describes {with_article(type(root).__name__)}; only a campaign or an evaluation has a smoke test"
        )
    if root.smoke:
        return resolved
    return replace(resolved, root=shrink(root).model_copy(update={"runs": root.runs / FOLDER}))

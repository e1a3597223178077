"""Which checkpoints are kept, and what of them."""

import re
from collections.abc import Mapping, Sequence

from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.manifest import Kind, Manifest

STEP = re.compile(r"step-(\d+)")
START = "start"


def retained(checkpoints: Sequence[Manifest], spec: Checkpointing, scores: Mapping[str, float]) -> dict[str, Kind]:
    """What each checkpoint that is kept shall be, by name; those left out are removed. `scores` are values of the suite that
    `spec.best` names, by name of checkpoint."""
    ordered = sorted(checkpoints, key=lambda each: each.index)
    full = {each.name for each in [each for each in ordered if each.kind == "full"][-spec.last :]}
    judged = [each for each in ordered if each.name in scores]
    best = max(judged, key=lambda each: scores[each.name]).name if judged else None  # of equal ones the first
    kept: dict[str, Kind] = {}
    for each in ordered:
        if each.name in full:
            kept[each.name] = "full"
        elif each.name == best or _is_due(each.name, spec.weights_every):
            kept[each.name] = "weights"
    return kept


def _is_due(name: str, every: int) -> bool:
    step = 0 if name == START else int(match[1]) if (match := STEP.fullmatch(name)) else None
    return bool(every) and step is not None and step % every == 0

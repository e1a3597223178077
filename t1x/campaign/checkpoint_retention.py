"""Which checkpoints are kept, and what of them."""

import re
from collections.abc import Mapping, Sequence

from t1x.campaign.checkpointing import Checkpointing
from t1x.campaign.manifest import Kind, Manifest

STEP = re.compile(r"step-(\d+)")
START = "start"


def retained(checkpoints: Sequence[Manifest], spec: Checkpointing, scores: Mapping[str, float]) -> dict[str, Kind]:
    """What each checkpoint that is kept shall be, by name; those left out are removed. The start's weights stay: what a start did
    may be long to do again. `scores` are values of the suite that `spec.best` names, by name of checkpoint."""
    ordered = sorted(checkpoints, key=lambda each: each.index)
    full = {each.name for each in [each for each in ordered if each.kind == "full"][-spec.last :]}
    judged = [each for each in ordered if each.name in scores]
    best = max(judged, key=lambda each: scores[each.name]).name if judged else None  # of equal ones the first
    kept: dict[str, Kind] = {}
    for each in ordered:
        if each.name in full:
            kept[each.name] = "full"
        elif each.name in (START, best) or _is_due(each.name, spec.weights_every):
            kept[each.name] = "weights"
    return kept


def _is_due(name: str, every: int) -> bool:
    match = STEP.fullmatch(name)
    return bool(every) and match is not None and int(match[1]) % every == 0

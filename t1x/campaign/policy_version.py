"""Which checkpoint of a run has which version of its policy: `start` is version 0, `step-3` is version 3."""

from pathlib import Path

from t1x.campaign.checkpoint_evaluation import CONFIG, Weights, find_weights
from t1x.campaign.checkpoint_retention import START, STEP
from t1x.campaign.record import Run


def version_of(weights: Weights) -> int | None:
    """None where the folder's name doesn't tell."""
    if weights.run is None:
        return None
    name = _checkpoint(weights)
    step = STEP.fullmatch(name)
    return 0 if name == START else int(step[1]) if step else None


def told_weights(weights: Weights) -> str:
    """`step-30 of quickstart-1a2b3c4d-0`, or the folder where they're of no run."""
    return str(weights.policy) if weights.run is None else f"{_checkpoint(weights)} of {weights.run.folder.name}"


def kept_weights(run: Run, version: int) -> Weights | None:
    """Those of a version of a run's policy; None where they aren't kept."""
    kept = run.folder / "checkpoints" / (f"step-{version}" if version else START) / "policy"
    return Weights(kept, run) if (kept / CONFIG).is_file() else None


def weights_beside(wanted: str, runs: Path, sampler: Run, versions: set[int] | None) -> tuple[Weights, str]:
    """The weights that `wanted` means beside what `versions` of the policy of a run sampled, or, where it's None, the untrained
    policy: where that is the run itself, those of the newest of these versions, if they are kept. And why they aren't of the
    version that sampled, empty where they are."""
    weights = find_weights(wanted, runs)
    if versions is None:
        return weights, f"sampled by the untrained policy of {sampler.folder.name}"
    same = weights.run is not None and weights.run.folder.resolve() == sampler.folder.resolve()
    if same and weights.newest:
        weights = kept_weights(sampler, max(versions, default=0)) or weights
    if same and versions == {version_of(weights)}:
        return weights, ""
    told = ", ".join(map(str, sorted(versions))) or "none"
    several = "versions" if len(versions) > 1 else "version"
    return weights, f"sampled by {several} {told} of {sampler.folder.name}"


def _checkpoint(weights: Weights) -> str:
    folder = weights.policy.resolve()
    return folder.parent.name if folder.name == "policy" else folder.name

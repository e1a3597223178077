"""Which trials a scheduler leaves out: what takes longest is cancelled most often, so the batch isn't a fair sample of what was
launched (report, section 7.4)."""

from collections import Counter, defaultdict

from t1x.rollout.records import RolloutBatch, Trial
from t1x.trajectory.ending import EndedBy

BUCKETS = (64, 256, 1024, 4096, 16_384, 65_536)
"""Bounds of a trial's length, in tokens that it has sampled."""


def retention(batch: RolloutBatch) -> dict[str, float]:
    """Of the trials that were admitted or could have been (not the invalid ones), the share admitted: `family/<name>` (a task
    counts in each of its families), `difficulty/<name>` and `length/<bucket>` by the tokens that a trial had sampled when it ended;
    and how those left out ended, `ended_by/<reason>`, as shares of them. Empty where none was left out."""
    left_out = [trial for trial in batch.others if trial.ended_by.counts or trial.ended_by is EndedBy.CANCELLED]
    if not left_out:
        return {}
    kept: dict[str, list[bool]] = defaultdict(list)
    for trials, admitted in ((batch.admitted, True), (left_out, False)):
        for trial in trials:
            for group in _groups(trial):
                kept[group].append(admitted)
    shares = {group: sum(each) / len(each) for group, each in sorted(kept.items())}
    reasons = Counter(trial.ended_by for trial in left_out)
    return shares | {f"ended_by/{reason}": count / len(left_out) for reason, count in sorted(reasons.items())}


def _groups(trial: Trial) -> list[str]:
    sampled = sum(len(turn.completion.ids) for turn in trial.turns)
    bound = next((bound for bound in BUCKETS if sampled < bound), None)
    length = f"{BUCKETS[-1]}_and_more" if bound is None else f"below_{bound}"
    families = [f"family/{name}" for name in sorted(set(trial.task.families))]
    return [*families, f"difficulty/{trial.task.difficulty}", f"length/{length}"]

"""Trajectories as plain values, and turns that are changed."""

from dataclasses import replace


def plain(trajectories):
    """Everything of them, as lists."""
    return [
        {
            "ids": t.token_ids.tolist(),
            "mask": t.loss_mask.tolist(),
            "logprobs": t.logprobs.tolist(),
            "versions": [version if lost else None for version, lost in zip(_versions(t), t.loss_mask.tolist(), strict=True)],
            "rows": t.routed_experts.tolist(),
            "boundaries": [str(boundary) for boundary in t.boundaries],
            "substituted": list(t.substituted_rows),
            "temperature": t.temperature,
        }
        for t in trajectories
    ]


def _versions(trajectory):
    """Of every position, None where no span has it."""
    found = [None] * len(trajectory.token_ids)
    for span in trajectory.versions:
        found[span.start : span.stop] = [span.version] * (span.stop - span.start)
    return found


def change(turn, **values):
    """The turn with parts of its completion replaced."""
    return replace(turn, completion=replace(turn.completion, **values))

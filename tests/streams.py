"""Trajectories as plain values, and turns that are changed."""

from dataclasses import replace


def plain(trajectories):
    """Everything of them, as lists."""
    return [
        {
            "ids": t.token_ids.tolist(),
            "mask": t.loss_mask.tolist(),
            "logprobs": t.logprobs.tolist(),
            "versions": [
                next((span.version for span in t.versions if span.start <= j < span.stop), None) if lost else None
                for j, lost in enumerate(t.loss_mask.tolist())
            ],
            "rows": t.routed_experts.tolist(),
            "boundaries": [str(boundary) for boundary in t.boundaries],
            "substituted": list(t.substituted_rows),
            "temperature": t.temperature,
        }
        for t in trajectories
    ]


def change(turn, **values):
    """The turn with parts of its completion replaced."""
    return replace(turn, completion=replace(turn.completion, **values))

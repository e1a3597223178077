"""Samples that encoding anew made longer than the model takes, cut at their ends as a training pipeline would."""

from collections.abc import Sequence
from dataclasses import replace

from t1x.trajectory.records import Trajectory


def fitted(trajectories: Sequence[Trajectory], longest: int) -> tuple[list[Trajectory], int]:
    """Those of at most `longest` ids, and how many loss tokens that costs. One that has none left is left out."""
    cut = [cut_to(trajectory, longest) for trajectory in trajectories]
    lost = sum(int(trajectory.loss_mask[longest:].sum()) for trajectory in trajectories)
    return [trajectory for trajectory in cut if trajectory.loss_mask.any()], lost


def cut_to(trajectory: Trajectory, length: int) -> Trajectory:
    """Its first `length` ids and what belongs to them; itself where it has no more."""
    if len(trajectory.token_ids) <= length:
        return trajectory
    return replace(
        trajectory,
        token_ids=trajectory.token_ids[:length],
        loss_mask=trajectory.loss_mask[:length],
        logprobs=trajectory.logprobs[:length],
        routed_experts=trajectory.routed_experts[: length - 1],
        versions=tuple(replace(span, stop=min(span.stop, length)) for span in trajectory.versions if span.start < length),
        substituted_rows=tuple(row for row in trajectory.substituted_rows if row < length - 1),
    )

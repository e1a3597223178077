"""Trajectories as plain values, and what a stitcher makes of a trial's turns."""

from dataclasses import dataclass

from t1x.trajectory.stitcher import StitchingError, TokenStitcher


def plain(trajectories):
    """What the slow stitcher calls chunks."""
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


@dataclass
class Stitched:
    """What came of the turns up to the first that was refused."""

    taken: list
    error: StitchingError | None
    snapshots: list
    """Trajectories after each turn that was taken."""

    @property
    def trajectories(self):
        return self.snapshots[-1] if self.snapshots else []


def build(world):
    return TokenStitcher().build(world.chat.tokenizer, world.layout)


def stitch(world):
    stitcher, taken, snapshots = build(world), [], []
    for turn in world.turns:
        try:
            stitcher.add(turn)
        except StitchingError as error:
            return Stitched(taken, error, snapshots)
        taken.append(turn)
        snapshots.append(stitcher.finish())
    return Stitched(taken, None, snapshots)

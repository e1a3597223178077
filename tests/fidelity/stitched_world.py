"""What the token stitcher makes of a trial."""

from dataclasses import dataclass

from small_chats import SmallChat

from t1x.trajectory.stitcher import StitchingError, TokenStitcher


@dataclass
class Stitched:
    """What came of the turns up to the first that was refused."""

    chat: SmallChat
    taken: list
    error: StitchingError | None
    snapshots: list
    """Trajectories after each turn that was taken."""

    @property
    def trajectories(self):
        return self.snapshots[-1] if self.snapshots else []

    @property
    def chunks(self):
        """Each trajectory with its turns: a restart begins the next one."""
        first = 0
        for index, trajectory in enumerate(self.trajectories):
            turns = self.taken[first : first + len(trajectory.boundaries) + (index == 0)]
            first += len(turns)
            yield trajectory, turns


def build(world):
    return TokenStitcher().build(world.chat.tokenizer, world.layout)


def stitch_world(world):
    stitcher, taken, snapshots = build(world), [], []
    for turn in world.turns:
        try:
            stitcher.add(turn)
        except StitchingError as error:
            return Stitched(world.chat, taken, error, snapshots)
        taken.append(turn)
        snapshots.append(stitcher.finish())
    return Stitched(world.chat, taken, None, snapshots)

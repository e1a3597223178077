"""What comes out of a stitcher of somebody's own is looked at where it's taken."""

import dataclasses

import numpy as np
import pytest
from toy_text import LAYOUT, TOY, turn

from t1x.config import Component
from t1x.trajectory.records import VersionSpan
from t1x.trajectory.stitcher import StitchingError, TokenStitcher

TURNS = (turn(0, "<u> <a>", "l s <e>"), turn(1, "<u> <a> l s <e> <t> <a>", "l a <e>"))
(SOUND,) = TokenStitcher().stitch("a trial", TURNS, TOY, LAYOUT)
N = len(SOUND.token_ids)


class Mine:
    """Gives what it is told to."""

    def __init__(self, made):
        self.made = made

    def add(self, turn):
        pass

    def finish(self):
        return self.made


def stitch(made, worker=Mine):
    class Own(TokenStitcher):
        """Somebody's own."""

        def build(self, tokenizer, layout):
            return worker(made)

    try:
        return Own().stitch("train-1-3", TURNS, TOY, LAYOUT)
    finally:
        del Component.registry["Own"]


def test_what_is_sound_is_taken():
    assert stitch([SOUND, SOUND]) == [SOUND, SOUND]
    assert stitch([]) == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "Mine.finish returned None; it must return list[Trajectory]"),
        (SOUND, "Mine.finish returned a Trajectory; it must return list[Trajectory]"),
        ([SOUND, None], "Mine.finish returned a list with None in it; it must return list[Trajectory]"),
    ],
)
def test_what_is_no_list_of_trajectories_is_told(made, said):
    with pytest.raises(StitchingError) as refused:
        stitch(made)
    assert str(refused.value) == f"Own can't stitch trial train-1-3: {said}"


def test_a_worker_that_is_none_is_told():
    with pytest.raises(StitchingError, match=r"trial train-1-3: Own\.build returned None; it must return a TrialStitcher$"):
        stitch([SOUND], worker=lambda made: None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"logprobs": SOUND.logprobs[1:]}, rf"logprobs are float32 \[{N - 1}\], but must be float32 \[{N}\]"),
        ({"logprobs": SOUND.logprobs.astype(np.float64)}, rf"logprobs are float64 \[{N}\], but must be float32"),
        ({"loss_mask": np.append(SOUND.loss_mask, True)}, rf"loss_mask are bool \[{N + 1}\], but must be bool \[{N}\]"),
        ({"routed_experts": SOUND.routed_experts[1:]}, f"its streams disagree: {N} token ids, .* {N - 2} routing rows"),
        ({"versions": (VersionSpan(0, N + 1, 3),)}, f"version 3 is that of tokens .* of {N}"),
        ({"logprobs": SOUND.logprobs.tolist()}, "'list' object has no attribute 'dtype'"),
        ({"token_ids": None}, "'NoneType' has no len"),
    ],
)
def test_streams_that_disagree_are_told_with_their_lengths(changed, said):
    with pytest.raises(StitchingError, match=f"^Own can't stitch trial train-1-3: Mine.finish .*malformed.*: .*{said}"):
        stitch([SOUND, dataclasses.replace(SOUND, **changed)])

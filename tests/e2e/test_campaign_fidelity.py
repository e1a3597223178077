"""What a campaign does with tokens that aren't what their turns sampled: it stops, unless they are the baseline's that it chose."""

import dataclasses
import re

import pytest
import starting
from stores import with_store

import t1x
from t1x.campaign.record import Status
from t1x.cli import main
from t1x.config import load
from t1x.tracking.log import read_log
from t1x.trajectory.stitcher import StitchingError, TokenFidelityError, TokenStitcher

CAMPAIGN = ("Campaign.start = @ScratchStart()", "Campaign.steps = 1", "Campaign.router = @FreeRouting()")


class ForgetfulStitcher(TokenStitcher):
    """Claims to be faithful, but the first loss position of a trial has another id."""

    def build(self, tokenizer, layout):
        worker = super().build(tokenizer, layout)
        finish = worker.finish

        def changed():
            first, *others = finish()
            ids = first.token_ids.copy()
            ids[first.loss_mask.argmax()] ^= 1
            return [dataclasses.replace(first, token_ids=ids), *others]

        worker.finish = changed
        return worker


class FussyStitcher(TokenStitcher):
    """Takes no turn."""

    def build(self, tokenizer, layout):
        worker = super().build(tokenizer, layout)

        def refuse(turn):
            raise TokenFidelityError(f"turn {turn.index} has an odd prompt")

        worker.add = refuse
        return worker


class ShortStitcher(TokenStitcher):
    """Loses a log-probability."""

    def build(self, tokenizer, layout):
        worker = super().build(tokenizer, layout)
        finish = worker.finish
        worker.finish = lambda: [dataclasses.replace(each, logprobs=each.logprobs[1:]) for each in finish()]
        return worker


class WrongStitcher(TokenStitcher):
    """Uses a field that isn't there."""

    def build(self, tokenizer, layout):
        worker = super().build(tokenizer, layout)
        finish = worker.finish
        worker.finish = lambda: [each.logits for each in finish()]
        return worker


def write(folder, sandboxes, stitcher):
    places = (f"Campaign.runs = '{with_store(folder / 'runs')}'", f"BubblewrapSandbox.root = '{sandboxes}'")
    return str(starting.write(folder, "fidelity", *CAMPAIGN, *places, f"Campaign.stitcher = @{stitcher}()"))


def run(folder, sandboxes, stitcher):
    return t1x.run(load(write(folder, sandboxes, stitcher)))


def test_a_token_that_its_turn_did_not_sample_stops_the_campaign(sandboxes, tmp_path, capsys):
    with pytest.raises(
        StitchingError, match=r"train rollout 1: 4 positions or labels aren't .* Trial .*, turn 0, token at position"
    ) as stopped:
        run(tmp_path, sandboxes, "ForgetfulStitcher")
    (failed,) = t1x.runs(tmp_path / "runs")
    assert failed.status is Status.FAILED
    assert failed.error == f"StitchingError: {stopped.value}"
    assert "as ForgetfulStitcher stitched them" in str(stopped.value)
    capsys.readouterr()
    assert f"`t1x audit {failed.folder}` shows these trials" in str(stopped.value)
    assert main(["audit", str(failed.folder)]) == 1, "what was refused is kept, to be looked at"
    said = " ".join(capsys.readouterr().out.split())
    assert "4 loss positions, 0 routing rows of context and 0 cached rows aren't what was captured" in said


@pytest.mark.parametrize(
    ("stitcher", "kind", "said"),
    [
        ("FussyStitcher", "TokenFidelityError", r"FussyStitcher can't stitch trial train-1-\d: turn 0 has an odd prompt"),
        (
            "ShortStitcher",
            "StitchingError",
            r"ShortStitcher can't stitch trial train-1-\d: \w+\.finish returned a malformed trajectory: trajectory 0: logprobs are "
            r"float32 \[\d+\], but must be float32 \[\d+\]",
        ),
    ],
)
def test_turns_that_cannot_be_stitched_end_a_run_with_one_message(sandboxes, tmp_path, capsys, stitcher, kind, said):
    assert main(["run", write(tmp_path, sandboxes, stitcher)]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(f"error: {said}", told)
    (failed,) = t1x.runs(tmp_path / "runs")
    assert failed.error == f"{kind}: {told.removeprefix('error: ')}"


def test_a_bug_in_a_stitcher_of_ones_own_is_its_own(sandboxes, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["run", write(tmp_path, sandboxes, "WrongStitcher")]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert re.fullmatch(
        r"error: WrongStitcher\.build \(\S*test_campaign_fidelity\.py:\d+\) fails: AttributeError: 'Trajectory' object has "
        r"no attribute 'logits'; this isn't t1x's code; its traceback is \S+\.log",
        captured.err.splitlines()[-1],
    )
    assert "Mend what stopped it and run the same command with --resume" in " ".join(captured.out.split())


def test_the_baseline_is_reported(sandboxes, tmp_path, capsys):
    """A policy that knows nothing splits words as no tokenizer does."""
    done = run(tmp_path, sandboxes, "RetokenizingStitcher")
    (metrics,) = (entry.metrics for entry in read_log(done.folder) if "fidelity/own_turn" in entry.metrics)
    assert metrics["fidelity/own_turn_violations"] > 0
    assert metrics["fidelity/own_turn"] < 1
    assert metrics["fidelity/cut_loss_tokens"] >= 0
    capsys.readouterr()
    assert main(["audit", str(done.folder)]) == 0
    assert "RetokenizingStitcher is a baseline" in capsys.readouterr().out

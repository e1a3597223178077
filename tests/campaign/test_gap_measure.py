"""The gap on trials that real sandboxes gave, against slow passes."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from open_folder import open_folder
from rich.console import Console

from t1x.campaign.assembly import first, named, trial_runner
from t1x.campaign.campaign import Campaign
from t1x.campaign.gap import Cell, Gap
from t1x.campaign.gap_measure import Dtype, Measured, Measurement, force
from t1x.campaign.progress import ProgressReport
from t1x.config import load
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding
from t1x.model.checkpoint import to_hf
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.rollout.records import Trial
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import WaitAll
from t1x.text.bundled import BundledTokenizer
from t1x.text.canonical import noncanonical
from t1x.trajectory.audit import audit
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import RetokenizingStitcher, TokenStitcher

FREE, REPLAYED = RouterMode.FREE, RouterMode.REPLAY_NO_GRAD


class Studied:
    """An untrained quickstart policy, whose router has small margins and whose ids are seldom canonical, on real trials."""

    def __init__(self, sandboxes: Path) -> None:
        settings = [
            "ShellHarness.max_turns = 2",
            "Campaign.sandbox = @BubblewrapSandbox()",
            f"BubblewrapSandbox.root = '{sandboxes}'",
        ]
        campaign = load("experiments/quickstart.gin", site="laptop", set=settings).root
        assert isinstance(campaign, Campaign)
        torch.set_num_threads(1)
        self.campaign, self.tokenizer = campaign, campaign.tokenizer.build()
        self.policy = campaign.model.build(0)
        self.trials = {trial.id: trial for trial in asyncio.run(self._roll())}
        self.measured: Measured = asyncio.run(self._measure())

    async def _roll(self) -> tuple[Trial, ...]:
        campaign, tasks = self.campaign, first(self.campaign.pool.build(), 24)
        engine = EmbeddedEngine(dtype="bfloat16").build(self.policy.config, to_hf(self.policy), version=9, deterministic=True)
        host = campaign.sandbox.build()
        try:
            run = trial_runner(campaign, host, self.tokenizer, engine, "gap", 0, Decoding(1.0))
            rolled = await rollout(named("gap", 0, tasks), batch=len(tasks), scheduler=WaitAll(), run=run, concurrency=24)
        finally:
            await engine.close()
            await host.close()
        return rolled.admitted

    async def _measure(self) -> Measured:
        trainer = self.campaign.trainer.build(self.policy, self.campaign.model.build_value(0), self.campaign.algorithm)
        with ProgressReport(Console(quiet=True)) as progress:
            return await Measurement(
                policy=self.policy,
                trainer=trainer,
                tokenizer=self.tokenizer,
                stitchers=(TokenStitcher(), RetokenizingStitcher()),
                concurrency=24,
                progress=progress,
            ).measure({name: trial.turns for name, trial in self.trials.items()})

    def gap(self, dtype: str, mode: RouterMode, stitcher: str = "TokenStitcher") -> Gap:
        return self.measured.cells[Cell(dtype, mode, stitcher)]


@pytest.fixture(scope="module")
def studied() -> Iterator[Studied]:
    with open_folder() as sandboxes:
        yield Studied(sandboxes)
        assert list(sandboxes.iterdir()) == [], "a sandbox left something behind"


def test_a_float32_engine_has_no_gap_and_none_of_its_experts_flips(studied: Studied) -> None:
    assert max(studied.gap("float32", mode).estimate.mean for mode in (FREE, REPLAYED)) < 1e-5
    assert studied.measured.margins["float32"].rate.mean < 1e-4


def test_replay_narrows_the_gap_of_a_bfloat16_engine_and_so_does_keeping_the_ids(studied: Studied) -> None:
    free, replayed = (studied.gap("bfloat16", mode) for mode in (FREE, REPLAYED))
    assert free.counts.tolist() == replayed.counts.tolist()
    assert free.counts.sum() == sum(len(turn.completion.ids) for trial in studied.trials.values() for turn in trial.turns) > 500
    effect = free.above(replayed)
    assert effect.mean > effect.stderr > 0
    encoded = studied.gap("bfloat16", REPLAYED, "RetokenizingStitcher").above(replayed)
    assert encoded.mean > 3 * encoded.stderr > 0


def test_the_ids_that_encoding_changes_are_counted_and_those_behind_them(studied: Studied) -> None:
    tokenizer, split, behind, tokens = studied.tokenizer, 0, 0, 0
    for trial in studied.trials.values():
        seen = False
        for turn in trial.turns:
            flags = noncanonical(tokenizer, turn.completion.ids)
            again = tokenizer.encode_spans(tokenizer.decode_spans(turn.completion.ids).text).ids
            assert flags.any() == (again.tolist() != turn.completion.ids.tolist())
            for flag in flags:
                seen = seen or bool(flag)
                tokens, split, behind = tokens + 1, split + bool(flag), behind + seen
    assert 0 < split < behind < tokens
    assert studied.measured.noncanonical.mean == pytest.approx(split / tokens)
    assert studied.measured.affected.mean == pytest.approx(behind / tokens)


@pytest.mark.parametrize("mode", [FREE, REPLAYED])
def test_a_cell_is_what_one_pass_a_trajectory_and_a_loop_over_its_tokens_give(studied: Studied, mode: RouterMode) -> None:
    """With q and experts as the deterministic bfloat16 engine gave them when it sampled: forced, it gives the same."""
    distances, entropies, flips, positions = [], [], 0, 0
    for trial in studied.trials.values():
        for sample in trial.trajectories:
            ids = torch.from_numpy(sample.token_ids.astype(np.int64))
            record = torch.from_numpy(sample.routed_experts.astype(np.int64))
            with torch.no_grad(), nullcontext() if mode is FREE else RoutingReplay(studied.policy, record, mode):
                output = studied.policy(ids[None, :-1])
                logprobs = studied.policy.logits(output.hidden[0]).log_softmax(-1).numpy()
            for at in np.flatnonzero(sample.loss_mask):
                distances.append(abs(float(logprobs[at - 1, sample.token_ids[at]]) - float(sample.logprobs[at])))
                entropies.append(-float((np.exp(logprobs[at - 1]) * logprobs[at - 1]).sum()))
            if mode is FREE:
                for chosen, recorded in zip(output.routed_experts[0], record, strict=True):
                    positions += 1
                    flips += sum(set(a) != set(b) for a, b in zip(chosen.tolist(), recorded.tolist(), strict=True))
    measured = studied.gap("bfloat16", mode)
    assert len(distances) == len(measured.distances)
    assert measured.estimate.mean == pytest.approx(np.mean(distances), rel=1e-3)
    if mode is FREE:
        found = studied.measured.margins["bfloat16"]
        assert studied.measured.entropy.mean == pytest.approx(np.mean(entropies), rel=1e-4)
        assert found.flipped.shape == (positions, studied.campaign.model.num_hidden_layers)  # type: ignore[attr-defined]
        assert found.flipped.sum() == pytest.approx(flips, abs=1), "but for a margin that rounding decides"


def forced(
    studied: Studied, trials: Mapping[str, Sequence[Turn]], *, dtype: Dtype = "bfloat16", version: int = 0
) -> list[list[Turn]]:
    async def run() -> list[list[Turn]]:
        engine = EmbeddedEngine(dtype=dtype).build(
            studied.policy.config, to_hf(studied.policy), version=version, deterministic=True
        )
        try:
            return await force(trials, engine, studied.tokenizer.stop_ids, 5)
        finally:
            await engine.close()

    return asyncio.run(run())


def test_forcing_keeps_the_turns_but_for_what_the_engine_says_of_them(studied: Studied) -> None:
    trials = {name: trial.turns for name, trial in studied.trials.items()}
    for turns, trial in zip(forced(studied, trials, version=2), studied.trials.values(), strict=True):
        assert len(turns) == len(trial.turns)
        for mine, its in zip(turns, trial.turns, strict=True):
            assert mine.prompt_ids.tolist() == its.prompt_ids.tolist()
            assert mine.completion.ids.tolist() == its.completion.ids.tolist()
            assert (mine.completion.finish_reason, mine.completion.version) == (its.completion.finish_reason, 2)
            assert mine.completion.logprobs.tobytes() == its.completion.logprobs.tobytes()


def two_turns(studied: Studied) -> Sequence[Turn]:
    return next(trial.turns for trial in studied.trials.values() if len(trial.turns) == 2)


def silent(turn: Turn) -> Turn:
    """The same prompt, to which nothing was sampled."""
    done = turn.completion
    nothing = replace(done, ids=done.ids[:0], logprobs=done.logprobs[:0], routing=done.routing[: len(done.routing) - len(done.ids)])
    return replace(turn, completion=replace(nothing, finish_reason="abort"))


@pytest.mark.parametrize("at", [(0,), (1,), (2,), (0, 1, 1, 2)])
def test_turns_that_sampled_nothing_are_kept_and_change_nothing_else(studied: Studied, at: tuple[int, ...]) -> None:
    """At each place of `at` a turn that sampled nothing comes before the turn of that number, or after the last. Where the engine
    goes on from such a prompt it computes the rest apart, so log-probabilities may differ in their last bits."""
    first, last = two_turns(studied)
    ids = np.concatenate([last.prompt_ids, last.completion.ids, studied.tokenizer.glue("done")])
    after = silent(replace(last, prompt_ids=ids.astype(np.int32)))
    mixed = [
        turn
        for number, real in enumerate((first, last, None))
        for turn in (*[silent(real or after)] * at.count(number), *([real] if real else []))
    ]
    numbered = [replace(turn, index=index) for index, turn in enumerate(mixed)]
    turns, plain = forced(studied, {"mixed": numbered, "plain": [first, last]}, dtype="float32")
    assert [turn.index for turn in turns] == list(range(2 + len(at)))
    assert [turn.completion.finish_reason for turn in turns if not len(turn.completion.ids)] == ["abort"] * len(at)
    (one,), (due,) = (
        TokenStitcher().stitch("a", each, studied.tokenizer, studied.policy.config.routing_layout) for each in (turns, plain)
    )
    n = len(due.token_ids)
    assert len(one.token_ids) == (len(ids) if 2 in at else n)
    for name in ("token_ids", "loss_mask"):
        assert np.array_equal(getattr(one, name)[:n], getattr(due, name))
    assert one.logprobs[:n] == pytest.approx(due.logprobs, abs=1e-5)
    assert np.array_equal(one.routed_experts[: n - 1], due.routed_experts)
    assert audit(turns, [one]).violations == 0


def test_a_turn_that_the_policy_can_not_have_taken_is_named(studied: Studied) -> None:
    first, last = two_turns(studied)
    foreign = np.where(np.arange(len(last.prompt_ids)) == 3, studied.policy.config.vocab_size + 7, last.prompt_ids)
    longest = np.tile(last.prompt_ids, 1 + studied.policy.config.max_position_embeddings // len(last.prompt_ids))
    for prompt, why in ((foreign, "prompt id .* at 3 is outside the vocabulary"), (longest, "leaves no room in a context")):
        wrong = replace(last, prompt_ids=prompt.astype(np.int32))
        with pytest.raises(ValueError, match=f"^trial wrong, turn 1 can't go through this policy: .*{why}"):
            forced(studied, {"right": [first, last], "wrong": [first, wrong]})
    ids = np.where(np.arange(len(last.completion.ids)) == 0, -5, last.completion.ids).astype(np.int32)
    with pytest.raises(ValueError, match=r"^trial wrong, turn 1 .*forced id -5 at 0"):
        forced(studied, {"wrong": [first, replace(last, completion=replace(last.completion, ids=ids))]})


def test_trials_without_a_sampled_token_are_refused() -> None:
    async def measure() -> None:
        with ProgressReport(Console(quiet=True)) as progress:
            await Measurement(
                policy=None,  # type: ignore[arg-type]
                trainer=None,  # type: ignore[arg-type]
                tokenizer=BundledTokenizer().build(),
                stitchers=(),
                concurrency=1,
                progress=progress,
            ).measure({"a": (), "b": ()})

    with pytest.raises(ValueError, match="2 trials without a sampled token"):
        asyncio.run(measure())

"""Rollouts and demonstrations with every part real: sandboxes, verifiers, the embedded engine."""

import asyncio
import random

import numpy as np
import pytest
import torch

from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding
from t1x.grading.reward import TestCountReward
from t1x.harness.shell import ShellHarness
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.rollout.demonstrate import demonstrate
from t1x.rollout.metrics import rollout_metrics
from t1x.rollout.rollout import rollout
from t1x.rollout.scheduler import Oversample, WaitAll
from t1x.rollout.streams import stream
from t1x.rollout.trial import run_trial
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.demonstrations import MixedDemonstrations
from t1x.tasks.synthetic import SyntheticPool
from t1x.text.bundled import BundledTokenizer
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.stitcher import TokenStitcher

torch.set_num_threads(1)
tokenizer = BundledTokenizer().build()
POOL = SyntheticPool(split="demo", size=8).build()
MODEL = Qwen3Moe(
    vocab_size=tokenizer.vocab_size,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    max_position_embeddings=256,
)


def sample(scheduler, batch, seed=0, sessions=16, concurrency=8, deterministic=False, pause=None):
    """A rollout of an untrained policy, whose trials start after so many seconds each."""

    async def main():
        host = BubblewrapSandbox().build(deterministic)
        weights = to_hf(MODEL.build(seed=0))
        engine = EmbeddedEngine(max_sessions=sessions).build(MODEL, weights, version=3, deterministic=deterministic)
        try:

            async def run(trial_id, task):
                if pause is not None:
                    await asyncio.sleep(pause())
                return await run_trial(
                    task,
                    trial_id=trial_id,
                    host=host,
                    engine=engine,
                    tokenizer=tokenizer,
                    harness=ShellHarness(max_turns=3, max_command_tokens=8),
                    stitch=lambda turns: TokenStitcher().stitch(trial_id, turns, tokenizer, MODEL.routing_layout),
                    reward=TestCountReward(),
                    decoding=Decoding(1.0),
                    seed_for=lambda turn: stream(seed, "sample", trial_id, turn),
                )

            trials = {f"t{i}": POOL[i] for i in range(scheduler.launches(batch))}
            return await rollout(
                trials, batch=batch, scheduler=scheduler, run=run, concurrency=concurrency, deterministic=deterministic
            )
        finally:
            await engine.close()
            await host.close()

    return asyncio.run(main())


def test_the_policys_trials_are_faithful_to_the_token():
    batch = sample(WaitAll(), 6, sessions=3)  # fewer sessions than trials: caches are evicted and rows recomputed
    assert len(batch.admitted) == 6
    found = sum((audit(trial.turns, trial.trajectories) for trial in batch.admitted), Audit())
    assert found.loss_tokens == sum(len(turn.completion.ids) for trial in batch.admitted for turn in trial.turns) > 0
    assert (found.own_turn_violations, found.context_differences) == (0, 0)
    for trial in batch.admitted:
        (trajectory,) = trial.trajectories
        assert trajectory.routed_experts.shape == (len(trajectory.token_ids) - 1, 2, 2)
        assert {span.version for span in trajectory.versions} == {3}
        assert (trajectory.logprobs[trajectory.loss_mask] < 0).all()


def test_what_is_sampled_depends_on_the_seed_and_not_on_who_shares_a_batch():
    def ids(batch):
        return {t.id: [turn.completion.ids.tolist() for turn in t.turns] for t in (*batch.admitted, *batch.others)}

    three, six = ids(sample(WaitAll(), 3)), ids(sample(WaitAll(), 6))
    assert three == {trial_id: six[trial_id] for trial_id in three}
    assert ids(sample(WaitAll(), 3, seed=1)) != three


def test_deterministic_rollouts_are_equal_to_the_bit_whatever_runs_beside():
    def bits(trial):
        turns = [
            (turn.prompt_ids.tolist(), done.ids.tolist(), done.logprobs.tobytes(), done.routing.tobytes(), done.routing_start)
            for turn in trial.turns
            for done in [turn.completion]
        ]
        streams = [
            (each.token_ids.tolist(), each.loss_mask.tolist(), each.logprobs.tobytes(), each.routed_experts.tobytes())
            for each in trial.trajectories
        ]
        return trial.id, turns, streams, trial.reward, trial.ended_by, trial.transcript

    def rolled(concurrency, pause=None):
        batch = sample(Oversample(ratio=2), 4, concurrency=concurrency, deterministic=True, pause=pause)
        assert (len(batch.admitted), len(batch.others)) == (4, 4)
        return [[bits(trial) for trial in trials] for trials in (batch.admitted, batch.others)], rollout_metrics(batch)

    chance = random.Random(0)
    one, metrics = rolled(1)
    many, same_metrics = rolled(8, lambda: chance.random() / 5)
    assert one == many
    assert {k: v for k, v in metrics.items() if "time/" not in k} == {k: v for k, v in same_metrics.items() if "time/" not in k}
    assert rolled(5)[0] == one


def test_oversampling_leaves_every_trial_accounted_for():
    batch = sample(Oversample(ratio=2), 3)
    assert len(batch.admitted) == 3
    assert {trial.id for trial in (*batch.admitted, *batch.others)} == {f"t{i}" for i in range(6)}
    metrics = rollout_metrics(batch)
    assert metrics["rollout/cancelled"] + metrics["rollout/late"] == 3
    assert metrics["rollout/invalid"] == 0


def record(commands, reward=None, harness=None):
    async def main():
        host = BubblewrapSandbox().build()
        try:
            return await demonstrate(
                [POOL[i] for i in range(len(commands))],
                commands,
                host=host,
                tokenizer=tokenizer,
                harness=harness or ShellHarness(),
                stitcher=TokenStitcher(),
                reward=reward,
                concurrency=4,
            )
        finally:
            await host.close()

    return asyncio.run(main())


def test_clean_demonstrations_resolve_their_tasks_and_observations_are_real():
    clean = MixedDemonstrations(skip_probability=0, careless_probability=0)
    commands = [("pwd", *clean.commands(POOL[i], clean.rng(i))) for i in range(8)]
    trials = record(commands, TestCountReward())
    assert [trial.task for trial in trials] == [POOL[i] for i in range(8)]
    for trial, given in zip(trials, commands, strict=True):
        assert trial.ended_by is EndedBy.DONE
        assert trial.report.resolved
        assert [text for role, text in trial.transcript if role == "assistant"] == [*given, "done"]
        assert trial.transcript[2] == ("tool", "/app")
        (trajectory,) = trial.trajectories
        assert trajectory.routed_experts.shape == (len(trajectory.token_ids) - 1, 0, 0)
        assert not trajectory.logprobs.any()
        said = np.concatenate(ShellHarness().script(given, tokenizer))
        assert np.array_equal(trajectory.token_ids[trajectory.loss_mask], said)


def test_demonstrations_need_no_verification():
    (trial,) = record([["true"]])
    assert (trial.ended_by, trial.report, len(trial.trajectories)) == (EndedBy.DONE, None, 1)
    assert record([]) == []


class Unlooked(ShellHarness):
    """One of somebody's own, whose script doesn't look at the length."""

    def script(self, commands, tokenizer):
        return ShellHarness(max_command_tokens=200).script(commands, tokenizer)


@pytest.mark.parametrize(
    ("harness", "said"),
    [
        (ShellHarness(), r"command 2 is too long: ShellHarness.max_command_tokens = 24, needs \d+ or more"),
        (Unlooked(), "command 2 of its demonstration is too long: Unlooked cut it after 'echo long"),
    ],
)
def test_a_command_that_the_harness_has_no_room_for_is_refused(harness, said):
    with pytest.raises(ValueError, match=rf"task {POOL[0].name}: {said}"):
        record([["ls", "echo " + "long " * 30]], harness=harness)


def test_a_demonstration_that_fills_the_context_is_marked():
    (trial,) = record([["seq 1000", "seq 1000", "seq 1000"]], harness=ShellHarness(context_tokens=90))
    assert trial.ended_by is EndedBy.CONTEXT

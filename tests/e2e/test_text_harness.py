"""A text-based harness in campaigns of one step, every part real: a policy that learned a little samples at a temperature of 1.3,
so that its splits are often not the canonical ones, and the prompts of its template end with an empty thinking block that history
doesn't have. Then the same policy where ids are the source of truth."""

import json
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from open_folder import open_folder
from stores import with_store

import t1x
from t1x.campaign.rollouts import RolledBatch, Rollouts
from t1x.config import load
from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent
from t1x.harness.shell import ShellHarness
from t1x.rollout.records import Trial
from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.trajectory.audit import Audit, audit
from t1x.trajectory.records import Boundary

TEMPLATE = """{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>\n\n</think>\n\n' }}{% endif %}"""
SIZES = (
    "Campaign.sandbox = @BubblewrapSandbox()",
    "Campaign.scheduler = @WaitAll()",
    "Campaign.reward = @TurnsReward()",
    "Campaign.suites = []",
    "Campaign.steps = 1",
    "Campaign.batch = 12",
    "Campaign.critic_warmup = 0",
    "Campaign.temperature = 1.3",
    "Campaign.tokenizer = @HuggingFaceTokenizer()",
    "HuggingFaceTokenizer.vocab_size = 700",
    "PPO.critic_epochs = 1",
    "train/SyntheticPool.size = 12",
)
START = ("demo/SyntheticPool.size = 12", "SupervisedStart.verified = 0", "Supervised.steps = 30", "Supervised.batch = 8")


class TurnsReward(Reward):
    """Differs from trial to trial, though the policy solves nothing yet."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return spent.turns / 8


@dataclass
class Ran:
    folder: Path
    trials: list[Trial]
    metrics: dict[str, float]

    def audit(self) -> Audit:
        return sum((audit(trial.turns, trial.trajectories) for trial in self.trials), Audit())


def run(folder: Path, harness: str, tokenizer: Path, *more: str) -> Ran:
    rolled: list[RolledBatch] = []
    roll = Rollouts.roll

    async def watched(self: Rollouts, purpose: str, step: int) -> RolledBatch:
        rolled.append(await roll(self, purpose, step))
        return rolled[-1]

    with open_folder() as sandboxes, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rollouts, "roll", watched)
        places = (
            f"Campaign.runs = '{with_store(folder)}'",
            f"BubblewrapSandbox.root = '{sandboxes}'",
            f"HuggingFaceTokenizer.path = '{tokenizer}'",
            f"Campaign.harness = @{harness}()",
        )
        done = t1x.run(load("experiments/quickstart.gin", set=[*SIZES, *places, *more])).folder
    steps = [json.loads(line)["metrics"] for line in (done / "log.jsonl").read_text().splitlines()]
    return Ran(done, [trial for each in rolled for trial in each.trials], next(each for each in steps if "actor/loss" in each))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "tokenizer.json").write_text((resources.files("t1x.text") / "data" / "tokenizer.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "chat_template": TEMPLATE}))
    return folder


@pytest.fixture(scope="module")
def from_text(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path) -> Ran:
    return run(tmp_path_factory.mktemp("text"), "TextShellHarness", tokenizer, *START)


@pytest.fixture(scope="module")
def from_ids(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path, from_text: Ran) -> Ran:
    start = ("Campaign.start = @CheckpointStart()", f"CheckpointStart.path = '{from_text.folder / 'checkpoints/start/policy'}'")
    return run(tmp_path_factory.mktemp("ids"), "ShellHarness", tokenizer, *start)


def test_every_case_but_the_exact_one_occurs_and_no_token_is_lost(from_text: Ran) -> None:
    found = from_text.audit()
    assert set(found.boundaries) == {Boundary.EDGE, Boundary.RETOKENIZED, Boundary.RESTART}
    assert min(found.boundaries.values()) >= 3
    assert found.own_turn_violations == 0
    assert found.context_differences > 0
    assert found.placeholder_tokens > 0
    assert found.loss_tokens == sum(len(turn.completion.ids) for trial in from_text.trials for turn in trial.turns)
    assert from_text.metrics["actor/grad_norm"] > 0


def test_what_training_sees_fits_the_context(from_text: Ran) -> None:
    """Though a trajectory keeps what history lost, and is longer than the prompt then."""
    lengths = [len(trajectory.token_ids) for trial in from_text.trials for trajectory in trial.trajectories]
    assert max(lengths) <= ShellHarness().context_tokens
    last = [len(trial.turns[-1].prompt_ids) + len(trial.turns[-1].completion.ids) for trial in from_text.trials]
    assert any(len(trial.trajectories[-1].token_ids) > shown for trial, shown in zip(from_text.trials, last, strict=True))


def test_each_boundary_is_what_the_texts_say(from_text: Ran, tokenizer: Path) -> None:
    """Worked out from turns alone: a sampled answer stands in the next prompt with other ids where it is retokenized, with the same
    ones at an edge, and an announced restart is where the case says so."""
    chat = HuggingFaceTokenizer(path=tokenizer, vocab_size=700).build()
    seen: Counter[Boundary] = Counter()
    for trial in from_text.trials:
        cases = [case for trajectory in trial.trajectories for case in trajectory.boundaries]
        assert len(trial.trajectories) == 1 + sum(turn.restarted for turn in trial.turns)
        for (before, turn), case in zip(pairwise(trial.turns), cases, strict=True):
            seen[case] += 1
            assert turn.restarted == (case is Boundary.RESTART)
            sampled = before.completion.ids
            said = sampled[: len(sampled) - (int(sampled[-1]) in chat.stop_ids)]
            if not turn.restarted:
                begin, end = turn.rendered.answer
                first, last = np.searchsorted(turn.rendered.encoded.starts, [begin, end])
                again = turn.prompt_ids[first:last]
                assert chat.decode(said).rstrip() == chat.decode(again)
                canonical = np.array_equal(again, said[: len(again)]) and not chat.decode(said[len(again) :]).strip()
                assert canonical == (case is Boundary.EDGE)
    assert sum(seen.values()) == sum(len(trial.turns) - 1 for trial in from_text.trials)


def test_ids_as_the_source_of_truth_make_every_boundary_exact(from_ids: Ran) -> None:
    found = from_ids.audit()
    assert set(found.boundaries) == {Boundary.EXACT}
    assert found.loss_tokens > 0
    assert (found.own_turn_violations, found.context_differences) == (0, 0)
    assert all(len(trial.trajectories) == 1 for trial in from_ids.trials)
    assert any(turn.placeholder_tokens for trial in from_ids.trials for turn in trial.turns)


def test_both_harnesses_show_a_policy_its_first_turn_alike(from_text: Ran, from_ids: Ran) -> None:
    first = [{trial.task.name: trial.turns[0].prompt_ids.tolist() for trial in ran.trials} for ran in (from_text, from_ids)]
    assert first[0] == first[1]

"""GRPO in a whole campaign, every part real: groups instead of a critic."""

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import torch
from open_folder import open_folder
from stores import with_store
from tiny import settings

import t1x
from t1x.campaign.rollouts import RolledBatch, Rollouts
from t1x.config import load
from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent
from t1x.model.checkpoint import load_pretrained

GROUP = 4
CHANGES = (
    "Campaign.algorithm = @GRPO()",
    "Campaign.scheduler = @WholeGroups()",
    "Campaign.critic_warmup = 0",
    "Campaign.suites = []",
    "Campaign.reward = @OrderOfGrading()",
    "GRPO.optimizer = @actor/Adam()",
    f"GRPO.group_size = {GROUP}",
)
GRADED = count()


class OrderOfGrading(Reward):
    """Differs within every group, though the policy knows nothing yet."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return float(next(GRADED))


@dataclass
class Trained:
    folder: Path
    steps: list[dict[str, float]]
    rollouts: list[RolledBatch]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    rollouts: list[RolledBatch] = []
    roll = Rollouts.roll

    async def watched(self: Rollouts, purpose: str, step: int) -> RolledBatch:
        rolled = await roll(self, purpose, step)
        rollouts.append(rolled)
        return rolled

    with open_folder() as sandboxes, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rollouts, "roll", watched)
        changes = settings(with_store(tmp_path_factory.mktemp("runs")), sandboxes, *CHANGES)
        folder = t1x.run(load("experiments/quickstart.gin", set=changes)).folder
    logged = [json.loads(line)["metrics"] for line in (folder / "log.jsonl").read_text().splitlines()]
    return Trained(folder, [metrics for metrics in logged if "actor/loss" in metrics], rollouts)


def test_it_trains_the_policy_without_a_critic(trained: Trained) -> None:
    assert len(trained.steps) == 2
    for metrics in trained.steps:
        assert metrics["actor/grad_norm"] > 0
        assert metrics["grpo/degenerate_groups"] == 0
        assert not [name for name in metrics if name.startswith(("critic/", "time/critic"))]
    start, final = (load_pretrained(trained.folder / "checkpoints" / name / "policy") for name in ("start", "step-2"))
    assert any(not torch.equal(a, b) for a, b in zip(start.parameters(), final.parameters(), strict=True))
    assert not (trained.folder / "checkpoints" / "step-2" / "critic").exists()


def test_each_task_is_tried_as_often_as_a_group_is_large(trained: Trained) -> None:
    for step, rolled in enumerate(trained.rollouts, start=1):
        assert [trial.id for trial in rolled.trials] == [f"train-{step}-{task}.{i}" for task in range(2) for i in range(GROUP)]
        assert [len({trial.task.name for trial in rolled.trials[first : first + GROUP]}) for first in (0, GROUP)] == [1, 1]
    assert len({trial.task.name for rolled in trained.rollouts for trial in rolled.trials}) == 4


def test_attempts_at_one_task_differ(trained: Trained) -> None:
    said = [trial.transcript for rolled in trained.rollouts for trial in rolled.trials]
    assert len(set(said)) > len(said) / 2

"""Campaigns of a few seconds that start from each other."""

from pathlib import Path

from t1x.grading.report import VerifierReport
from t1x.grading.reward import Reward, Spent

BASE = """
import starting
include 'registry/models/tiny_moe.gin'
Campaign.model = @Qwen3Moe()
Campaign.pool = @SyntheticPool()
Campaign.reward = @TaskLengthReward()
Campaign.algorithm = @PPO()
Campaign.sandbox = @BubblewrapSandbox()
Campaign.batch = 4
SyntheticPool.split = 'train'
SyntheticPool.size = 8
ShellHarness.max_turns = 2
PPO.actor_optimizer = @Adam()
PPO.critic_optimizer = @Adam()
Adam.lr = 1e-3
"""


class TaskLengthReward(Reward):
    """T/20: differs from task to task whatever the policy does, so that the critic of one that knows nothing learns something."""

    def __call__(self, report: VerifierReport, spent: Spent) -> float:
        return report.total / 20


def write(folder: Path, name: str, *lines: str) -> Path:
    """An experiment file with these bindings; of several of one field the last holds."""
    bindings = {line.partition(" = ")[0]: line for line in [*BASE.strip().splitlines(), *lines]}
    file = folder / f"{name}.gin"
    file.write_text("\n".join([*bindings.values(), ""]))
    return file


def start_from(file: Path, critic: bool = False) -> list[str]:
    """Bindings that start the policy, and the critic, from another campaign."""
    lines = ["Campaign.start = @CampaignStart()", f"CampaignStart.experiment = '{file}'", "Campaign.steps = 0"]
    return [*lines, *(["Campaign.critic_start = @CampaignStart()"] if critic else [])]


def first(folder: Path, *lines: str) -> Path:
    """The campaign that the others start from: one step from fresh weights."""
    return write(folder, "first", "Campaign.start = @ScratchStart()", "Campaign.steps = 1", *lines)

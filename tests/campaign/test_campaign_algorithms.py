"""What a campaign demands of its parts for an algorithm that compares trials of one task and has no critic."""

import pytest

from t1x.campaign.campaign import Campaign
from t1x.campaign.rollouts import repeated
from t1x.config import ConfigError, load
from t1x.tasks.task import Task

EXPERIMENT = "experiments/quickstart.gin"
GRPO = (
    "Campaign.algorithm = @GRPO()",
    "GRPO.optimizer = @actor/Adam()",
    "Campaign.scheduler = @WholeGroups()",
    "Campaign.critic_warmup = 0",
)


def problem(*settings: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(EXPERIMENT, set=[*GRPO, *settings])
    (found,) = refused.value.problems
    return str(found)


def test_grpo_fits_the_quickstart() -> None:
    campaign = load(EXPERIMENT, set=GRPO).root
    assert isinstance(campaign, Campaign)
    assert campaign.algorithm.trials_per_task == 8


def test_no_critic_is_warmed_up_or_started_where_there_is_none() -> None:
    said = problem("Campaign.critic_warmup = 2")
    assert "critic_warmup is set, but algorithm GRPO has no critic; set it to 0" in said
    said = problem("Campaign.critic_start = @ScratchStart()")
    assert "critic_start is set, but algorithm GRPO has no critic; set it to None" in said


@pytest.mark.parametrize("scheduler", ["Oversample", "WaitAll"])
def test_grpo_needs_whole_groups(scheduler: str) -> None:
    said = problem(f"Campaign.scheduler = @{scheduler}()")
    assert f"scheduler {scheduler} may admit some of them only; use @WholeGroups()" in said


def test_a_batch_is_made_of_whole_groups() -> None:
    said = problem("Campaign.batch = 60")
    assert "set batch to a multiple of 8, such as 64" in said
    load(EXPERIMENT, set=[*GRPO, "Campaign.batch = 60", "GRPO.group_size = 6"])
    load(EXPERIMENT, set=["Campaign.batch = 61", "Campaign.scheduler = @WholeGroups()"])


def test_groups_are_attempts_that_follow_one_another() -> None:
    one, two = (Task(name, "", (), (), ()) for name in ("one", "two"))
    assert list(repeated({"train-1-0": one, "train-1-1": two}, 2).items()) == [
        ("train-1-0.0", one),
        ("train-1-0.1", one),
        ("train-1-1.0", two),
        ("train-1-1.1", two),
    ]
    assert repeated({"train-1-0": one}, 1) == {"train-1-0": one}, "streams depend on the name, so it stays"

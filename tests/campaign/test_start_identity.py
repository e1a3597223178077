"""What makes two runs the same, and starts that can't be: found before anything runs."""

from pathlib import Path

import pytest

from t1x.campaign.identity import resolve_starts, run_digest_of
from t1x.config import ConfigError, load
from t1x.config.digest import run_digest, study_digest
from t1x.config.smoke import shrink

BASE = """
include 'registry/models/tiny_moe.gin'
Campaign.model = @Qwen3Moe()
Campaign.pool = @SyntheticPool()
Campaign.reward = @BinaryReward()
Campaign.algorithm = @PPO()
Campaign.batch = 8
Campaign.steps = 2
SyntheticPool.split = 'train'
SyntheticPool.size = 8
PPO.actor_optimizer = @Adam()
PPO.critic_optimizer = @Adam()
Adam.lr = 1e-3
"""


def write(folder: Path, name: str, start: str | None, *lines: str) -> str:
    """A campaign that starts from another one, or from fresh weights."""
    chosen = ["@ScratchStart()"] if start is None else ["@CampaignStart()", f"CampaignStart.experiment = '{folder / start}.gin'"]
    file = folder / f"{name}.gin"
    file.write_text("\n".join([BASE, f"Campaign.start = {chosen[0]}", *chosen[1:], *lines, ""]))
    return str(file)


def test_a_run_that_starts_from_no_other_is_told_by_its_tree(tmp_path: Path) -> None:
    root = load(write(tmp_path, "alone", None)).root
    assert run_digest_of(root) == run_digest(root)


def test_a_changed_start_makes_another_run(tmp_path: Path) -> None:
    write(tmp_path, "far", None)
    write(tmp_path, "near", "far")
    root = load(write(tmp_path, "outer", "near")).root
    before = run_digest_of(root)
    assert run_digest_of(root) == before
    write(tmp_path, "far", None, "Campaign.threads = 2")
    assert run_digest_of(root) == before, "where it runs changes nothing"
    write(tmp_path, "far", None, "ClippedSurrogate.clip = 0.1")
    assert run_digest_of(root) != before, "the start of its start has changed"


def test_a_start_runs_where_the_one_that_asks_for_it_does(tmp_path: Path) -> None:
    write(tmp_path, "first", None, "Campaign.seed = 5")
    outer = load(
        write(tmp_path, "outer", "first"),
        set=["Experiment.runs = 'elsewhere'", "Campaign.sandbox = @ProcessSandbox()", "MLflowTracking.parent = 'a'"],
    ).root
    (needed,) = resolve_starts(outer)
    campaign = needed.campaign
    assert (campaign.name, campaign.seed, campaign.runs) == ("first", 5, Path("elsewhere"))
    assert type(campaign.sandbox).__name__ == "ProcessSandbox"
    assert campaign.tracking.parent is None, "it belongs to no cell"
    (small,) = resolve_starts(shrink(outer))
    assert (small.campaign.smoke, small.campaign.batch, small.campaign.steps) == (True, 4, 1)
    assert small.run_digest != needed.run_digest


def test_one_that_several_start_from_is_there_once(tmp_path: Path) -> None:
    write(tmp_path, "first", None)
    both = load(
        write(
            tmp_path,
            "both",
            "first",
            "Campaign.critic_start = @NamedStart()",
            "NamedStart.name = 'x'",
            "NamedStart.source = @CampaignStart()",
        )
    ).root
    assert len(resolve_starts(both)) == 1


def problem(file: str) -> str:
    resolved = load(file)
    with pytest.raises(ConfigError) as refused:
        resolve_starts(resolved.root, resolved.origins)
    return str(refused.value)


def test_a_circle_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    write(tmp_path, "b", "c")
    write(tmp_path, "c", "a")
    said = problem(write(tmp_path, "outer", "a"))
    assert f"in a circle: {tmp_path}/a.gin → {tmp_path}/b.gin → {tmp_path}/c.gin → {tmp_path}/a.gin" in said
    assert f"{tmp_path}/outer.gin:16: the campaign '{tmp_path}/a.gin' can't be a start" in said


def test_one_that_would_start_from_itself_is_named(tmp_path: Path) -> None:
    assert "start from each other in a circle" in problem(write(tmp_path, "a", "a"))


def test_what_is_wrong_in_its_file_is_told_with_both_places(tmp_path: Path) -> None:
    write(tmp_path, "first", None, "PPO.clpi = 0.1")
    said = problem(write(tmp_path, "outer", "first"))
    assert f"{tmp_path}/outer.gin:16: " in said
    assert f"{tmp_path}/first.gin:16: PPO has no field clpi" in said


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"there is no file {tmp_path}/gone.gin" in problem(write(tmp_path, "outer", "gone"))


def test_only_a_campaign_has_weights_to_start_from(tmp_path: Path) -> None:
    (tmp_path / "grid.gin").write_text("Grid.base = 'x.gin'\nGrid.axes = {'a': {'b': []}}\n")
    assert "grid.gin describes a Grid; weights come from a Campaign" in problem(write(tmp_path, "outer", "grid"))


def test_a_start_of_another_architecture_is_named(tmp_path: Path) -> None:
    write(tmp_path, "first", None, "Qwen3Moe.num_experts_per_tok = 1")
    assert "num_experts_per_tok = 1 (the experiment has 2)" in problem(write(tmp_path, "outer", "first"))


def test_a_policy_cannot_start_from_one_that_keeps_only_its_critic(tmp_path: Path) -> None:
    first = Path(write(tmp_path, "first", None))
    first.write_text(first.read_text().replace("@PPO()", "@CriticWarmup()"))
    assert "keeps no policy" in problem(write(tmp_path, "outer", "first"))
    critic = ["Campaign.critic_start = @CampaignStart()", f"CampaignStart.experiment = '{tmp_path}/first.gin'"]
    resolve_starts(load(write(tmp_path, "warm", None, *critic)).root)


def test_a_critic_cannot_start_from_demonstrations(tmp_path: Path) -> None:
    lines = [
        "Campaign.critic_start = @SupervisedStart()",
        "SupervisedStart.pool = @SyntheticPool()",
        "SupervisedStart.demonstrations = @MixedDemonstrations()",
        "SupervisedStart.fine_tuning = @Supervised()",
        "Supervised.optimizer = @Adam()",
    ]
    file = write(tmp_path, "outer", None, *lines)
    with pytest.raises(ConfigError, match="critic_start SupervisedStart teaches a policy"):
        load(file)
    named = [line.replace("critic_start = @SupervisedStart", "critic_start = @NamedStart") for line in lines]
    file = write(tmp_path, "named", None, *named, "NamedStart.name = 'x'", "NamedStart.source = @SupervisedStart()")
    with pytest.raises(ConfigError, match="critic_start NamedStart teaches a policy"):
        load(file)


@pytest.mark.parametrize(
    "lines",
    [
        ("Campaign.start = @CheckpointStart()", "CheckpointStart.path = '{}'"),
        ("Campaign.pool = @FolderPool()", "FolderPool.path = '{}'"),
        (
            "Campaign.tokenizer = @HuggingFaceTokenizer()",
            "HuggingFaceTokenizer.vocab_size = 700",
            "HuggingFaceTokenizer.path = '{}'",
        ),
    ],
)
def test_other_weights_tasks_or_ids_are_another_run_of_the_same_study(tmp_path: Path, lines: tuple[str, ...]) -> None:
    file = write(tmp_path, "alone", None)
    here, there = (load(file, set=[line.format(path) for line in lines]).root for path in ("here", "there"))
    assert run_digest(here) != run_digest(there)
    assert study_digest(here) == study_digest(there)

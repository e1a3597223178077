"""Which run `--resume` goes on with, and what becomes of its digest."""

from dataclasses import replace
from pathlib import Path

import pytest

from t1x.campaign.campaign import Campaign
from t1x.campaign.identity import run_digest_of
from t1x.campaign.loop import check_fits
from t1x.campaign.record import Run, Status, alive, stored_run
from t1x.campaign.resume import Found, Resume, find
from t1x.config import dump, load

BASE = """
include 'registry/models/tiny_moe.gin'
include 'registry/algorithms/ppo.gin'
Campaign.model = @Qwen3Moe()
Campaign.pool = @SyntheticPool()
Campaign.start = @ScratchStart()
Campaign.reward = @BinaryReward()
Campaign.batch = 8
Campaign.steps = {steps}
Campaign.name = 'mine'
SyntheticPool.split = 'train'
SyntheticPool.size = 8
Adam.lr = {lr}
Campaign.runs = '{folder}/runs'
"""


def campaign(folder: Path, lr: float = 1e-3, steps: int = 2) -> Campaign:
    file = folder / "mine.gin"
    file.write_text(BASE.format(folder=folder, lr=lr, steps=steps))
    root = load(file).root
    assert isinstance(root, Campaign)
    return root


def stored(root: Campaign, name: str, status: Status, **fields: object) -> Run:
    """A run of an experiment, on disk."""
    folder = root.runs / name
    folder.mkdir(parents=True)
    (folder / "config.gin").write_text(dump(root))
    known = {"name": "mine", "kind": "Campaign", "seed": 0, "site": None, "experiment": "", "study_digest": ""}
    return Run(folder=folder, run_digest=run_digest_of(root), status=status, **(known | fields)).save()


def looked_for(root: Campaign, allow_changes: bool = False) -> Found | None:
    return find(root, run_digest_of(root), Resume(allow_changes))


def test_there_is_nothing_in_an_empty_folder(tmp_path: Path) -> None:
    assert looked_for(campaign(tmp_path)) is None


@pytest.mark.parametrize("status", [Status.KILLED, Status.FAILED, Status.FINISHED])
def test_one_of_the_same_digest_is_gone_on_with_as_it_is(tmp_path: Path, status: Status) -> None:
    root = campaign(tmp_path)
    run = stored(root, "a", status)
    stored(campaign(tmp_path, lr=2e-3), "newer", Status.KILLED, started=run.started + 9)
    found = looked_for(root)
    assert found == Found(run)
    assert found.digest == run_digest_of(root)


def test_of_other_settings_only_an_interrupted_one_is_in_the_way(tmp_path: Path) -> None:
    stored(campaign(tmp_path, lr=2e-3), "other", Status.FINISHED)
    assert looked_for(campaign(tmp_path)) is None
    stored(campaign(tmp_path, lr=2e-3), "killed", Status.KILLED)
    with pytest.raises(ValueError, match=r"lr: 0\.002 → 0\.001"):
        looked_for(campaign(tmp_path))


def test_with_leave_a_finished_one_gets_more_steps(tmp_path: Path) -> None:
    run = stored(campaign(tmp_path), "a", Status.FINISHED)
    longer = campaign(tmp_path, steps=5)
    found = looked_for(longer, allow_changes=True)
    assert found is not None
    assert (found.run, found.changes) == (run, ("steps: 2 → 5",))
    assert found.digest not in (run_digest_of(longer), run.run_digest)


def test_a_mixture_keeps_a_digest_of_its_own_however_often_it_is_gone_on_with(tmp_path: Path) -> None:
    changed = campaign(tmp_path, lr=2e-3)
    mixture = stored(changed, "a", Status.KILLED)
    mixture = replace(mixture, run_digest="mixture", mixed=True).save()
    found = looked_for(changed)
    assert found == Found(mixture)
    assert found.digest == "mixture"


def test_a_start_that_has_changed_is_a_change(tmp_path: Path) -> None:
    root = campaign(tmp_path)
    replace(stored(root, "a", Status.KILLED), run_digest="with another start").save()
    with pytest.raises(ValueError, match="a campaign that it starts from has changed"):
        looked_for(root)


def test_one_process_at_a_time_works_on_a_run(tmp_path: Path) -> None:
    run = stored(campaign(tmp_path), "a", Status.KILLED)
    with alive(run.folder), pytest.raises(ValueError, match="another process works on"), alive(run.folder):
        pass
    with alive(run.folder):
        assert stored_run(run.folder) == run


class Networks:
    """As much of a checkpoint as is looked at."""

    name = "step-1"

    def __init__(self, **networks: object) -> None:
        self.networks = networks


def test_a_checkpoint_of_other_networks_is_refused_before_anything_changes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds policy, but algorithm PPO trains critic and policy; run it without --resume"):
        check_fits(campaign(tmp_path), Networks(policy=None))  # type: ignore[arg-type]

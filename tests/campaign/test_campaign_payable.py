"""Tasks that the reward can't pay are named before anything runs."""

import dataclasses
from pathlib import Path

import pytest

import t1x
from t1x.campaign.payable import check_payable
from t1x.config import load
from t1x.tasks.export import export_pool
from t1x.tasks.pool import TaskPool
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task

TOLD = r"run `t1x tasks check` on the pool .*, or set TestCountReward\.exclude_baseline = False"
FOLDER = ("Campaign.pool = @FolderPool()",)
SUITE = ("held_out/PoolSuite.pool = @FolderPool()", "held_out/PoolSuite.greedy = 1", "held_out/PoolSuite.sampled = 0")


@pytest.mark.parametrize(("settings", "where"), [(FOLDER, "pool"), (SUITE, "suite held_out")])
def test_a_pool_that_was_never_checked_is_refused_before_anything_starts(
    settings: tuple[str, ...], where: str, tmp_path: Path
) -> None:
    export_pool(SyntheticPool(split="train", size=2).build(), tmp_path / "pool", None)
    named = sorted(path.name for path in (tmp_path / "pool").iterdir() if path.is_dir())[0]
    paths = (f"FolderPool.path = '{tmp_path / 'pool'}'", f"Campaign.runs = '{tmp_path / 'runs'}'")
    resolved = load("experiments/quickstart.gin", site="laptop", set=(*settings, *paths))
    with pytest.raises(ValueError, match=rf"^{where}, task {named}: reward TestCountReward: .*{TOLD}"):
        t1x.run(resolved)
    assert not (tmp_path / "runs").exists()


class Pool(list[Task]):
    """The given tasks."""


def without_baselines(pool: TaskPool, known: int) -> Pool:
    """Its tasks, whose first ones keep their baselines."""
    return Pool(dataclasses.replace(pool[i], baseline=pool[i].baseline if i < known else None) for i in range(len(pool)))


def test_a_suite_is_asked_for_the_tasks_that_it_runs() -> None:
    root = load("experiments/quickstart.gin", site="laptop").root
    pools = {suite.name: SyntheticPool(split="held_out", size=120).build() for suite in root.suites}
    check_payable(root, None, pools)
    pools["validation"] = without_baselines(pools["validation"], known=100)
    check_payable(root, None, pools)  # it runs 100
    pools["validation"] = without_baselines(pools["validation"], known=99)
    with pytest.raises(ValueError, match=f"^suite validation, task {pools['validation'][99].name}: "):
        check_payable(root, None, pools)

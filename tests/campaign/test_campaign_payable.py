"""Tasks that the reward can't pay are named before anything runs."""

import dataclasses
from pathlib import Path

import pytest

import t1x
from t1x.campaign.payable import check_payable
from t1x.config import load
from t1x.tasks.digest import folder_digest
from t1x.tasks.export import export_pool
from t1x.tasks.folder import FolderPool
from t1x.tasks.manifest import NAME, Entry, Fault, Finding, Manifest, Settings, write_manifest
from t1x.tasks.pool import TaskPool
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Task

TOLD = r"\(TestCountReward\.exclude_baseline = False\).* @BinaryReward\(\) .* FolderPool\.per_assertion = False"
FOLDER = ("Campaign.pool = @FolderPool()",)
SUITE = ("held_out/PoolSuite.pool = @FolderPool()", "held_out/PoolSuite.greedy = 1", "held_out/PoolSuite.sampled = 0")


@pytest.mark.parametrize(("settings", "where"), [(FOLDER, "the training pool"), (SUITE, "suite held_out")])
def test_a_pool_that_was_never_checked_is_refused_before_anything_starts(
    settings: tuple[str, ...], where: str, tmp_path: Path
) -> None:
    export_pool(SyntheticPool(split="train", size=2).build(), tmp_path / "pool", None)
    named = sorted(path.name for path in (tmp_path / "pool").iterdir() if path.is_dir())[0]
    paths = (f"FolderPool.path = '{tmp_path / 'pool'}'", f"Campaign.runs = '{tmp_path / 'runs'}'")
    resolved = load("experiments/quickstart.gin", site="laptop", set=(*settings, *paths))
    with pytest.raises(
        ValueError, match=rf"^TestCountReward can't pay (\d) of the \1 tasks of {where} \({named}\b.*{TOLD}.* check {tmp_path}"
    ):
        t1x.run(resolved)
    assert not (tmp_path / "runs").exists()


def test_what_the_check_found_is_told_with_the_line_that_leaves_it_out(tmp_path: Path) -> None:
    """Of six tasks one is sound, three have a broken verifier, one code in its judge's process, one no known fault."""
    export_pool(SyntheticPool(split="train", size=6).build(), tmp_path, None)
    names = sorted(path.name for path in tmp_path.iterdir())
    faults: list[tuple[Fault, ...]] = [
        (),
        ("verifier_unusable",),
        ("flaky", "verifier_unusable"),
        ("verifier_unusable",),
        ("in_process",),
    ]
    entries = {
        name: Entry(
            sha256=folder_digest(tmp_path / name),
            assertions=("a",),
            baseline=() if not found else None,
            findings=tuple(Finding(fault=each, detail="") for each in found),
        )
        for name, found in zip(names, faults, strict=False)
    }
    root = load("experiments/quickstart.gin", site="laptop").root

    def told() -> str:
        write_manifest(tmp_path / NAME, Manifest(settings=Settings(sandbox="s", repeats=2), tasks=entries))
        with pytest.raises(ValueError, match=r"^TestCountReward can't pay 5 of the 6 tasks of the training pool") as raised:
            check_payable(root, FolderPool(path=tmp_path).build(), {suite.name: Pool() for suite in root.suites})
        return str(raised.value)

    assert f"({', '.join(names[1:4])} and 2 more): " in told()
    assert told().endswith(f". Not checked as they are: 1 of them; run `t1x tasks check {tmp_path}`")
    entries[names[5]] = Entry(sha256=folder_digest(tmp_path / names[5]))
    assert told().endswith(
        ". The check found verifier_unusable in 3, flaky in 1, in_process in 1, in 1 no fault; what leaves out those with a fault: "
        "FolderPool.without = ('in_process', 'verifier_unusable')"
    )


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
    with pytest.raises(
        ValueError, match=rf"^TestCountReward can't pay 1 of the 100 tasks of suite validation \({pools['validation'][99].name}\): "
    ):
        check_payable(root, None, pools)

"""Cells become experiments, and everything that is wrong with any of them is said before anything runs."""

from pathlib import Path

import pytest
from grid_runs import AXES, grid, write_grid

from t1x.campaign.campaign import Campaign
from t1x.campaign.identity import run_digest_of
from t1x.campaign.resolve_cells import of_grid, resolve_cells
from t1x.config import ConfigError, dump, load


def test_a_cell_is_the_base_with_its_levels_and_its_seed(tmp_path: Path) -> None:
    cells = grid(tmp_path, "Grid.seeds = (0, 3)")
    assert [each.cell.name for each in cells.experiments][:3] == [
        "reward=dense,r3=on,seed=0",
        "reward=dense,r3=on,seed=3",
        "reward=dense,r3=off,seed=0",
    ]
    assert len({each.digest for each in cells.experiments}) == 8
    last = cells.experiments[-1].root
    assert isinstance(last, Campaign)
    assert (type(last.reward).__name__, type(last.router).__name__, last.seed) == ("BinaryReward", "FreeRouting", 3)
    assert last.name == "small_reward-binary_r3-off"
    assert last.runs == tmp_path / "runs"


def test_a_cell_has_the_digest_of_the_same_experiment_outside_the_grid(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    alone = load("experiments/quickstart.gin", set=["Campaign.reward = @BinaryReward()"])
    assert {each.cell.combination: each.digest for each in cells.experiments}["reward=binary,r3=on"] == run_digest_of(alone.root)


def test_a_cells_file_loads_back_to_the_same_run(tmp_path: Path) -> None:
    each = grid(tmp_path).experiments[-1]
    file = tmp_path / "cell.gin"
    file.write_text(dump(each.root))
    assert run_digest_of(load(file, site="auto").root) == each.digest


def test_settings_change_every_cell(tmp_path: Path) -> None:
    cells = resolve_cells(load(write_grid(tmp_path)), set=["Campaign.batch = 32"])
    assert {each.root.batch for each in cells.experiments if isinstance(each.root, Campaign)} == {32}


def test_the_grids_folder_is_the_same_for_the_same_cells_only(tmp_path: Path) -> None:
    folder = grid(tmp_path).folder
    assert folder == grid(tmp_path).folder
    assert folder != grid(tmp_path, "Grid.seeds = (1,)").folder
    assert folder == grid(tmp_path, "Grid.baseline = {'r3': 'off'}").folder
    assert folder.parent == tmp_path / "runs"


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        resolve_cells(load(path))
    return [str(problem) for problem in error.value.problems]


def test_problems_of_all_cells_are_told_at_once_with_the_cells_that_have_them(tmp_path: Path) -> None:
    axes = """{
    'reward': {'dense': [], 'binary': ['Campaign.reward = @BinryReward()']},
    'size': {'small': ['Campaign.bach = 3'], 'large': []},
}"""
    path = write_grid(tmp_path, axes, "Grid.seeds = (0, 1)")
    size, reward = problems(path)
    assert size.startswith(f"{path}:2 size=small 'Campaign.bach = 3': Campaign has no field bach")
    assert size.endswith("(in size=small)")
    assert reward.startswith(f"{path}:2 reward=binary 'Campaign.reward = @BinryReward()': ")
    assert "did you mean 'BinaryReward'?" in reward
    assert reward.endswith("(in reward=binary)")


def test_a_problem_of_the_base_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "base.gin").write_text("include 'experiments/quickstart.gin'\nCampaign.bach = 3\n")
    path = tmp_path / "small.gin"
    path.write_text(f"Grid.base = 'base.gin'\nGrid.axes = {AXES}\n")
    (found,) = problems(path)
    assert found.startswith(f"{tmp_path / 'base.gin'}:2: ")
    assert found.endswith("(in every cell)")


def test_a_rule_between_fields_that_one_cell_breaks(tmp_path: Path) -> None:
    axes = """{
    'reward': {'dense': [], 'binary': ['Campaign.reward = @BinaryReward()']},
    'tests': {'reported': [], 'hidden': [
        'Campaign.pool = @FolderPool()', 'FolderPool.path = "tasks"', 'FolderPool.per_assertion = False',
    ]},
}"""
    (found,) = problems(write_grid(tmp_path, axes, "Grid.seeds = (0, 1)"))
    assert "reward TestCountReward needs a record of each assertion" in found
    assert found.endswith("(in reward=dense,tests=hidden)")


def test_two_cells_that_run_the_same_are_refused(tmp_path: Path) -> None:
    axes = "{'threads': {'one': [], 'two': ['Campaign.threads = 2']}}"
    with pytest.raises(ValueError, match="threads=one,seed=0 and threads=two,seed=0 don't differ in anything that is run"):
        resolve_cells(load(write_grid(tmp_path, axes)))


def test_a_base_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "small.gin"
    path.write_text(f"Grid.base = 'experiments/quickstrt.gin'\nGrid.axes = {AXES}\n")
    assert problems(path) == [f"{path}:1: there is no file experiments/quickstrt.gin; did you mean 'experiments/quickstart.gin'?"]


def test_a_base_that_does_not_run(tmp_path: Path) -> None:
    write_grid(tmp_path)
    path = tmp_path / "outer.gin"
    path.write_text("Grid.base = 'small.gin'\nGrid.axes = {'a': {'b': []}}\n")
    with pytest.raises(ValueError, match="describes a Grid; what a grid varies is a Campaign or an Evaluation"):
        resolve_cells(load(path))


def test_a_seed_is_the_grids(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"set 'Campaign.seed = 4': the seeds of a grid's cells are Grid.seeds"):
        resolve_cells(load(write_grid(tmp_path)), set=["Campaign.seed = 4"])


def test_a_smoke_test_of_a_grid_is_another_run_that_is_kept_apart(tmp_path: Path) -> None:
    file = load(write_grid(tmp_path))
    whole, tiny = resolve_cells(file), resolve_cells(file, smoke=True)
    assert {each.root.runs for each in tiny.experiments} == {tiny.folder.parent} == {whole.folder.parent / "smoke"}
    assert not whole.has_smoke_test
    (tiny.folder / "cells").mkdir(parents=True)
    assert whole.has_smoke_test
    assert not {each.digest for each in whole.experiments} & {each.digest for each in tiny.experiments}
    assert {each.root.steps for each in tiny.experiments if isinstance(each.root, Campaign)} == {1}


def test_which_settings_are_about_the_grid() -> None:
    assert of_grid("Grid.seeds = (0, 1)")
    assert not of_grid("Campaign.steps = 1")


@pytest.mark.parametrize("site", ["laptop", "cluster"])
@pytest.mark.parametrize("path", sorted(Path("experiments/grids").glob("*.gin")), ids=lambda path: path.stem)
def test_every_cell_of_the_shipped_grids_loads_on_every_site(path: Path, site: str) -> None:
    assert resolve_cells(load(path), site=site).experiments

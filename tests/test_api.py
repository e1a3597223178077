"""What a program uses."""

import subprocess
import sys
from pathlib import Path

import pytest

import t1x
from t1x.config.site import default_site

QUICKSTART = "experiments/quickstart.gin"


def test_importing_it_is_light() -> None:
    code = "import sys, t1x; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "t1x" in loaded
    assert not {"torch", "mlflow", "pydantic", "numpy", "gin"} & set(loaded)


def test_an_experiment_is_loaded_for_the_site_of_this_machine() -> None:
    assert t1x.load(QUICKSTART, site=default_site()).root == t1x.load(QUICKSTART).root
    assert t1x.load(QUICKSTART).root.site == default_site()
    assert t1x.load(QUICKSTART, site=None).root.site is None


def test_settings_win() -> None:
    assert t1x.load(QUICKSTART, set=["Campaign.seed = 7"]).root.seed == 7


def test_a_smoke_test_is_small_and_kept_apart() -> None:
    resolved = t1x.load(QUICKSTART, smoke=True)
    assert (resolved.root.smoke, resolved.root.steps, resolved.root.batch) == (True, 1, 4)
    assert resolved.root.runs == Path("runs/smoke")
    start = resolved.root.start
    assert (start.tasks, start.verified, start.fine_tuning.steps, start.fine_tuning.batch) == (16, 2, 2, 4)


def test_only_an_experiment_has_a_smoke_test(tmp_path: Path) -> None:
    grid = tmp_path / "grid.gin"
    grid.write_text("Grid.base = 'x.gin'\nGrid.axes = {'a': {'b': []}}\n")
    with pytest.raises(ValueError, match="describes a Grid; only a campaign or an evaluation"):
        t1x.load(grid, site=None, smoke=True)


def test_a_folder_without_runs_has_none(tmp_path: Path) -> None:
    assert t1x.runs(tmp_path) == []


def test_a_single_setting_may_stand_alone() -> None:
    assert t1x.load(QUICKSTART, set="Campaign.seed = 7").root.seed == 7


def test_a_tree_that_was_changed_without_validation_is_refused() -> None:
    root = t1x.load(QUICKSTART).root
    with pytest.raises(ValueError, match=r"Campaign\.batch: Input should be a valid integer") as caught:
        t1x.run(root.model_copy(update={"batch": "many", "steps": -1}))
    assert "Campaign.steps: Input should be greater than or equal to 0" in str(caught.value)
    reward = root.reward.model_copy(update={"scale": 0})
    with pytest.raises(ValueError, match=r"TestCountReward\.scale: Input should be greater than 0"):
        t1x.run(root.model_copy(update={"reward": reward}))


def test_only_a_tree_can_be_run() -> None:
    with pytest.raises(ValueError, match=r"takes what t1x\.load gives, .* not a str, 'experiments/quickstart\.gin'"):
        t1x.run(QUICKSTART)

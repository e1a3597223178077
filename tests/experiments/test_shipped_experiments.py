"""Every file under experiments/ and registry/, on every site."""

import functools
from pathlib import Path

import pytest

from t1x.campaign.campaign import Campaign
from t1x.campaign.grid import Grid
from t1x.campaign.resolve_cells import resolve_cells
from t1x.config import Resolved, Root, dump, load
from t1x.config.digest import study_digest
from t1x.config.places import package_folder
from t1x.config.problem import Origin
from t1x.config.site import sites
from t1x.config.statement import Binding, parse

ROOT = package_folder()
EXPERIMENTS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "experiments").rglob("*.gin"))
GRIDS = [path for path in EXPERIMENTS if "/grids/" in path]
STAND_INS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "registry/sites").glob("*/experiments/*.gin"))
BLOCKS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "registry").rglob("*.gin"))
SITES = ("cluster", "laptop")


@functools.cache
def on(file: str, site: str, *settings: str) -> Resolved:
    return load(file, site=site, set=settings)


def levels(grid: Root) -> list[tuple[str, ...]]:
    """The settings of each level of each axis."""
    assert isinstance(grid, Grid)
    return [settings for axis in grid.axes.values() for settings in axis.values()]


def everything() -> list[Resolved]:
    """Every experiment on every site, and the base of every grid with each level of it."""
    loaded = [on(file, site) for file in EXPERIMENTS for site in SITES] + [on(file, "laptop") for file in STAND_INS]
    for grid in GRIDS:
        base = on(grid, "laptop").root.base
        loaded += [on(base, site, *settings) for settings in levels(on(grid, "laptop").root) for site in SITES]
    return loaded


def test_the_sites_are_those_that_are_shipped() -> None:
    assert tuple(site for site in sites() if (ROOT / "registry/sites" / site).is_dir()) == SITES


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("file", EXPERIMENTS)
def test_an_experiment_loads_and_comes_back_from_its_own_text(file: str, site: str, tmp_path: Path) -> None:
    resolved = on(file, site)
    assert resolved.notes == () or file == "experiments/quickstart.gin"
    (tmp_path / "config.gin").write_text(dump(resolved.root), encoding="utf-8")
    again = load(tmp_path / "config.gin", site=site)
    assert again.root == resolved.root
    assert again.root.site == site


@pytest.mark.parametrize("file", EXPERIMENTS)
def test_a_site_changes_nothing_that_is_studied(file: str) -> None:
    assert len({study_digest(on(file, site).root) for site in SITES}) == 1


@pytest.mark.parametrize("file", BLOCKS)
def test_everything_that_a_building_block_says_is_used_somewhere(file: str) -> None:
    used = {origin for resolved in everything() for origin in resolved.origins.values()}
    statements, _ = parse((ROOT / file).read_text(encoding="utf-8"), lambda line: Origin(file, line))
    unused = [each.name for each in statements if isinstance(each, Binding) and each.origin not in used]
    assert unused == []


def test_the_production_campaign_is_the_reports() -> None:
    """Numbers of the report, each with its section."""
    root = on("experiments/dense_t1_15k.gin", "cluster").root
    assert isinstance(root, Campaign)
    assert (root.batch, root.scheduler.launches(root.batch)) == (512, 560)  # 4.4, 7.4
    assert root.training_steps(root.pool.size) == 110  # 6.3
    ppo = root.algorithm
    assert ppo.actor_optimizer.lr_at(0) == pytest.approx(1e-6, rel=1e-12)  # 4.5
    assert ppo.critic_optimizer.lr_at(0) == pytest.approx(1.5e-5, rel=1e-12)  # 4.5
    assert root.harness.context_tokens == 84_000  # 6.2
    assert [suite.every for suite in root.suites] == [10]  # Figure 12


@pytest.mark.parametrize(
    ("file", "steps"),
    [("dense_rst_38k", 70), ("binary_tmax_15k", 58), ("critic_warmup_tmax_15k", 29), ("grpo_t1_15k", 20)],
)
def test_campaigns_are_as_long_as_the_reports(file: str, steps: int) -> None:
    """Sections 6.2 and 9.4, Figure 7; one epoch of 14,601 tasks is 28.5 batches."""
    root = on(f"experiments/{file}.gin", "cluster").root
    assert isinstance(root, Campaign)
    assert root.training_steps(root.pool.size) == steps


@pytest.mark.parametrize("file", [file for file in EXPERIMENTS if file not in GRIDS and "quickstart" not in file])
def test_stand_ins_keep_the_order_of_sizes(file: str) -> None:
    """A pool on the laptop is as much smaller as every other: within a percent of a 29th, so that epochs mean the same."""
    here, there = on(file, "laptop").root, on(file, "cluster").root
    if isinstance(here, Campaign) and isinstance(there, Campaign):
        ratio = there.pool.size / here.pool.size
        assert ratio == pytest.approx(15_000 / 512, rel=0.01)


@pytest.mark.parametrize("site", SITES)
def test_the_fidelity_grid_samples_in_another_precision_than_the_trainers(site: str) -> None:
    """In the trainer's no expert flips, so that replay has nothing to do."""
    cells = resolve_cells(on("experiments/grids/fidelity.gin", site), site=site)
    assert cells.notes == ()
    assert {vars(each.root.engine)["dtype"] for each in cells.experiments} == {"bfloat16"}

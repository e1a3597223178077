"""Which cells a grid has, and what they are called. Each invariant of `t1x.campaign.cells`, over any grid."""

from itertools import product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.campaign.cells import Cell, described, expand, select
from t1x.campaign.grid import Grid

NAMES = st.text(ascii_lowercase, min_size=1, max_size=4).filter(lambda name: name != "seed")


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    axes = {
        axis: dict.fromkeys(draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)), ())
        for axis in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    }
    seeds = draw(st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
    whole = Grid(base="base.gin", axes=axes, seeds=tuple(seeds))
    combinations = [dict(zip(axes, levels, strict=True)) for levels in product(*axes.values())]
    left_out = draw(st.lists(st.sampled_from(combinations), max_size=3)) if len(combinations) > 1 else []
    parts = []
    for combination in left_out:
        kept = draw(st.sets(st.sampled_from(list(combination)), min_size=1))
        part = {axis: level for axis, level in combination.items() if axis in kept}
        if not part.items() <= whole.baseline_levels.items():
            parts.append(part)
    return Grid(base="base.gin", axes=axes, seeds=tuple(seeds), exclude=tuple(parts))


@given(grids())
def test_every_combination_that_is_not_excluded_comes_once_with_every_seed(grid: Grid) -> None:
    def left_out(levels: tuple[str, ...]) -> bool:
        of = dict(zip(grid.axes, levels, strict=True))
        return any(all(of[axis] == level for axis, level in part.items()) for part in grid.exclude)

    kept = [levels for levels in product(*grid.axes.values()) if not left_out(levels)]
    expected = [Cell(tuple(zip(grid.axes, levels, strict=True)), seed) for levels in kept for seed in grid.seeds]
    cells = expand(grid)
    assert cells == expected
    assert len(set(cells)) == len(cells)
    assert len({cell.name for cell in cells}) == len({cell.file_name for cell in cells}) == len(cells)


@given(grids())
def test_without_exclusions_there_is_a_cell_for_each_element_of_the_product(grid: Grid) -> None:
    count = len(grid.seeds)
    for levels in grid.axes.values():
        count *= len(levels)
    assert len(expand(grid.model_copy(update={"exclude": ()}))) == count


@given(grids(), st.integers(100, 200))
def test_names_and_order_do_not_depend_on_what_else_is_in_the_grid(grid: Grid, seed: int) -> None:
    larger = grid.model_copy(update={"seeds": (*grid.seeds, seed), "exclude": ()})
    known = {cell: cell.file_name for cell in expand(larger)}
    cells = expand(grid)
    assert [cell for cell in known if cell in set(cells)] == cells
    assert all(known[cell] == cell.file_name for cell in cells)


@given(grids(), st.data())
def test_only_keeps_the_cells_with_one_of_the_levels_of_each_axis_that_is_named(grid: Grid, data: st.DataObject) -> None:
    cells = expand(grid)
    some = data.draw(st.lists(st.sampled_from(cells), min_size=1, max_size=2))
    axis = data.draw(st.sampled_from(list(grid.axes)))
    only = [f"{axis}={dict(cell.levels)[axis]}" for cell in some] + [f"seed={cell.seed}" for cell in some]
    levels, seeds = {dict(cell.levels)[axis] for cell in some}, {cell.seed for cell in some}
    assert select(cells, grid, only) == [cell for cell in cells if dict(cell.levels)[axis] in levels and cell.seed in seeds]
    assert select(cells, grid, []) == cells


GRID = Grid(
    base="base.gin",
    axes={"reward": {"dense": (), "binary": ("a",)}, "r3": {"on": (), "off": ("b",)}},
    seeds=(0, 1),
    exclude=({"reward": "binary", "r3": "off"},),
)


def test_names() -> None:
    first = expand(GRID)[0]
    assert first.name == "reward=dense,r3=on,seed=0"
    assert first.folder_name == "reward-dense_r3-on"
    assert first.file_name == "reward-dense_r3-on_seed-0"


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ("rewrd=binary", "there is no axis rewrd; did you mean 'reward'?; there are reward, r3, seed"),
        ("reward=binry", "reward has no level binry; did you mean 'binary'?; it has dense, binary"),
        ("seed=7", "seed has no level 7; it has 0, 1"),
        ("binary", "write axis=level, e.g. --only reward=dense"),
    ],
)
def test_only_with_an_unknown_name(only: str, said: str) -> None:
    with pytest.raises(ValueError, match="--only") as error:
        select(expand(GRID), GRID, [only])
    assert said in str(error.value)


def test_only_that_leaves_nothing() -> None:
    with pytest.raises(ValueError, match="the grid excludes them"):
        select(expand(GRID), GRID, ["reward=binary", "r3=off"])


def test_cells_are_described_by_what_only_they_have_in_common() -> None:
    cells = expand(GRID)
    assert described(cells, cells) == "every cell"
    assert described([cell for cell in cells if ("r3", "off") in cell.levels], cells) == "reward=dense,r3=off"
    assert described([cell for cell in cells if cell.seed == 1], cells) == "seed=1"
    assert described(cells[:1], cells) == "reward=dense,r3=on,seed=0"
    assert described([cells[0], cells[3]], cells) == "reward=dense,r3=on,seed=0, reward=dense,r3=off,seed=1"


def test_two_cells_that_would_share_a_file_are_refused() -> None:
    grid = Grid(base="base.gin", axes={"a": {"x_c-y": (), "x": ()}, "c": {"z": (), "y_c-z": ()}})
    with pytest.raises(ValueError, match=r"a=x_c-y,c=z,seed=0 and a=x,c=y_c-z,seed=0 would both be kept as"):
        expand(grid)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"axes": {"seed": {"a": ()}}}, "an axis can't be called seed"),
        ({"axes": {"a": {"x/y": ()}}}, "String should match pattern"),
        (
            {"axes": {"a": {"x": (), "y": ()}}, "exclude": ({"a": "x"},)},
            "exclude leaves out a=x, which the others are",
        ),
        ({"axes": {"a": {}}}, "each axis a level"),
        ({"axes": {"a": {"x": ()}}, "seeds": (1, 1)}, "seeds needs at least one number, each once"),
        ({"axes": {"a": {"x": ()}}, "baseline": {"a": "y"}}, "baseline names the level 'y' of a"),
    ],
)
def test_a_grid_that_cannot_be(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match="Grid") as error:
        Grid(base="base.gin", **fields)
    assert said in str(error.value)

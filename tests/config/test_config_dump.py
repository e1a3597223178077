"""Trees written as Gin text load back to equal trees."""

import math
from datetime import date

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from toy_components import ToyAdam, ToyColour, ToyCount, ToyLacquer, ToyLevel, ToyNest, ToyPenalty, ToyRun, ToyShelf, ToySweep

from t1x.config import Root, dump, load
from t1x.config.mapping import to_mapping

numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=5,
)
counts = st.builds(ToyCount, divisor=st.integers(1, 5))
prizes = st.recursive(counts, lambda inner: st.builds(ToyPenalty, inner=inner, weight=numbers), max_leaves=3)
adams = st.builds(ToyAdam, lr=numbers)
paints = st.builds(
    ToyLacquer,
    colour=st.sampled_from(ToyColour),
    level=st.sampled_from(ToyLevel),
    shine=st.sampled_from(["matt", "gloss"]),
    thickness=numbers,
    layers=st.integers(),
    dry=st.booleans(),
    label=st.text(),
    raw=st.binary(),
    file=st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    mix=st.lists(st.none() | st.integers()).map(tuple),
    shares=st.dictionaries(st.text(), numbers),
    tags=st.frozensets(st.text()),
    anything=plain,
)
runs = st.builds(
    ToyRun,
    steps=st.integers(),
    prize=prizes,
    basket=st.builds(ToyShelf, size=st.integers()),
    actor=adams,
    critic=adams,
    paints=st.lists(paints, max_size=3).map(tuple),
    more=st.dictionaries(st.text(), prizes, max_size=3),
    name=st.text(st.characters(exclude_characters="/")).filter(lambda name: name != "broken"),
)


nests = st.recursive(
    st.none(),
    lambda inner: st.builds(ToyNest, inner=inner, layers=st.integers(1, 3)) | st.builds(ToySweep, base=runs),
    max_leaves=3,
).filter(lambda root: root is not None)


NEST = ToyNest(inner=ToyNest(inner=ToySweep(base=ToyRun(steps=1, prize=ToyCount())), layers=2))


@given(runs | nests)
@example(NEST)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_dumped_tree_loads_back_equal(tmp_path_factory, root):
    """The invariant of dump.py."""
    path = tmp_path_factory.getbasetemp() / "dumped.gin"
    path.write_text(dump(root), encoding="utf-8")
    assert load(path).root == root


def test_the_text_is_what_a_person_would_write():
    root = ToySweep(base=ToyRun(steps=1, prize=ToyCount(), critic=ToyAdam(lr=0.25)))
    assert dump(root) == (
        "import toy_components\n"
        "\n"
        "ToySweep.site = None\n"
        "ToySweep.base = @ToyRun()\n"
        "\n"
        "ToyRun.site = None\n"
        "ToyRun.steps = 1\n"
        "ToyRun.prize = @ToyCount()\n"
        "ToyRun.basket = @ToyShelf()\n"
        "ToyRun.actor = @ToyAdam()\n"
        "ToyRun.critic = @ToyAdam()\n"
        "ToyRun.paints = ()\n"
        "ToyRun.more = {}\n"
        "ToyRun.name = 'toy'\n"
        "ToyRun.flag = False\n"
        "\n"
        "ToyCount.divisor = 20\n"
        "\n"
        "ToyShelf.size = 4\n"
        "\n"
        "ToyAdam.lr = 0.25\n"
    )


def test_different_components_of_a_class_are_told_apart_by_scope():
    text = dump(ToyRun(steps=1, prize=ToyCount()))
    for line in (
        "ToyRun.actor = @actor/ToyAdam()",
        "ToyRun.critic = @critic/ToyAdam()",
        "actor/ToyAdam.lr = 0.25",
        "critic/ToyAdam.lr = 0.5",
    ):
        assert line in text.splitlines()


def test_origins_become_comments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.gin").write_text("import toy_components\nToyRun.steps = 3\nToyRun.prize = @ToyCount()\n")
    resolved = load("a.gin", set=["ToyShelf.size = 2"])
    lines = dump(resolved.root, resolved.origins).splitlines()
    for line in ("ToyRun.steps = 3  # a.gin:2", "ToyShelf.size = 2  # --set 'ToyShelf.size = 2'", "ToyRun.name = 'toy'  # default"):
        assert line in lines
    (tmp_path / "b.gin").write_text("\n".join(lines))
    assert load("b.gin").root == resolved.root


def test_long_containers_are_written_over_several_lines(tmp_path):
    root = ToyRun(steps=1, prize=ToyCount(), paints=tuple(ToyLacquer(layers=layers) for layers in range(9)))
    text = dump(root)
    assert max(len(line) for line in text.splitlines()) <= 100
    (tmp_path / "a.gin").write_text(text)
    assert load(tmp_path / "a.gin").root == root


@pytest.mark.parametrize("value", [math.nan, date(2000, 1, 1), [object()]])
def test_what_gin_cannot_write_is_refused_with_its_path(value):
    root = ToyRun(steps=1, prize=ToyCount(), paints=(ToyLacquer(anything=value),))
    with pytest.raises(ValueError, match=r"ToyRun\.paints\[0\]\.anything is .*Gin has no way to write"):
        dump(root)


def test_a_root_is_a_kind_of_its_own():
    assert ToyRun.kind() is Root


def test_a_tree_as_nested_mappings():
    root = ToyRun(steps=1, prize=ToyPenalty(inner=ToyCount()), paints=(ToyLacquer(tags=frozenset({"x"}), mix=(1, None)),))
    mapping = to_mapping(root)
    assert mapping["class"] == "ToyRun"
    assert mapping["prize"] == {"class": "ToyPenalty", "inner": {"class": "ToyCount", "divisor": 20}, "weight": 0.5}
    (paint,) = mapping["paints"]
    assert (paint["colour"], paint["level"], paint["file"], paint["mix"], paint["tags"]) == ("red", 1, "paint", [1, None], ["x"])

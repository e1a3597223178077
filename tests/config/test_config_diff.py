"""The invariants of diff.py, and what a difference says."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from test_config_dump import nests, runs
from toy_components import ToyAdam, ToyCount, ToyLacquer, ToyPenalty, ToyRun, ToyShelf, ToySweep

from t1x.config import Role, load
from t1x.config.diff import Difference, diff
from t1x.config.problem import Origin

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
RUN = ToyRun(steps=1, prize=ToyCount())


def between(left, right) -> list[Difference]:
    return diff((left, {}), (right, {}))


def every(differences) -> Iterator[Difference]:
    for difference in differences:
        yield difference
        yield from every(difference.inside)


@given(runs | nests)
@SLOW
def test_a_tree_does_not_differ_from_itself(root):
    assert between(root, root.model_copy(deep=True)) == []


@given(runs | nests, runs | nests)
@SLOW
def test_the_differences_of_b_and_a_are_those_of_a_and_b_swapped(a, b):
    back = sorted(repr((one.path, one.role, one.right, one.left)) for one in every(between(b, a)))
    assert back == sorted(repr((one.path, one.role, one.left, one.right)) for one in every(between(a, b)))


@given(runs | nests, runs | nests)
@SLOW
def test_every_difference_is_real_and_unequal_trees_have_one(a, b):
    found = between(a, b)
    assert bool(found) == (a != b)
    for difference in every(found):
        for root, side in ((a, difference.left), (b, difference.right)):
            if side is not None:
                assert at(root, difference.path) == side.value
        if difference.left is not None and difference.right is not None:
            assert difference.left.value != difference.right.value


def at(root, path):
    """The value at a path, which is read as Python."""
    return eval(f"root.{path}" if path else "root", {"root": root})


def test_a_replaced_component_is_one_difference_with_its_fields_inside():
    other = RUN.model_copy(update={"prize": ToyPenalty(inner=ToyCount(divisor=3))})
    (difference,) = between(RUN, other)
    assert (difference.path, difference.left.value, difference.right.value) == ("prize", RUN.prize, other.prize)
    assert [(one.path, one.left and one.left.value, one.right and one.right.value) for one in difference.inside] == [
        ("prize.divisor", 20, None),
        ("prize.inner", None, ToyCount(divisor=3)),
        ("prize.weight", None, 0.5),
    ]
    assert [one.path for one in difference.inside[1].inside] == ["prize.inner.divisor"]


def test_a_component_of_the_same_class_differs_in_its_fields():
    other = RUN.model_copy(update={"actor": ToyAdam(lr=1.0), "more": {"x": ToyCount()}})
    found = between(RUN, other)
    assert [(one.path, one.left and one.left.value, one.right and one.right.value) for one in found] == [
        ("actor.lr", 0.25, 1.0),
        ("more['x']", None, ToyCount()),
    ]


def test_items_are_compared_one_by_one():
    a, b = (RUN.model_copy(update={"paints": tuple(ToyLacquer(layers=n) for n in layers)}) for layers in ((1, 2), (1, 3, 4)))
    assert [one.path for one in between(a, b)] == ["paints[1].layers", "paints[2]"]


def test_roots_of_two_classes_are_a_difference_too():
    (difference,) = between(RUN, ToySweep(base=RUN))
    assert difference.path == ""
    assert {one.path for one in difference.inside} == {*ToyRun.model_fields, "base"} - {"site"}


def test_roles_are_effective_and_the_stricter_of_two():
    (difference,) = between(RUN, RUN.model_copy(update={"prize": ToyCount(divisor=3)}))
    assert difference.role is Role.SCALE
    assert between(RUN, RUN.model_copy(update={"basket": ToyShelf(size=9)}))[0].role is Role.ALGORITHM


def test_origins_are_those_of_each_side(write):
    write("a.gin", "import toy_components\nToyRun.steps = 3\nToyRun.prize = @ToyCount()\nToyRun.paints = [@ToyLacquer()]\n")
    a, b = load("a.gin"), load("a.gin", set=["ToyRun.steps = 4", "ToyLacquer.layers = 2"])
    c = load("a.gin", set=["ToyRun.paints = []"])
    steps, layers = diff((a.root, a.origins), (b.root, b.origins))
    assert (steps.left.origin, steps.right.origin) == (Origin("a.gin", 2), Origin("--set", 1, "ToyRun.steps = 4"))
    assert (layers.left.origin, layers.right.origin) == (None, Origin("--set", 2, "ToyLacquer.layers = 2"))
    (paint,) = diff((a.root, a.origins), (c.root, c.origins))
    assert paint.left.origin == Origin("a.gin", 4)


@pytest.mark.parametrize(("a", "b"), [((1,), [1]), ([ToyCount()], (ToyCount(),)), ([ToyCount()], None)])
def test_containers_of_two_types_differ_as_wholes(a, b):
    sides = [RUN.model_copy(update={"paints": (ToyLacquer(anything=value),)}) for value in (a, b)]
    assert [one.path for one in between(*sides)] == ["paints[0].anything"]

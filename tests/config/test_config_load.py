"""Bindings, scopes, macros, includes and origins: what a Gin file means."""

import gin.config
import pytest
from toy_components import ToyAdam, ToyCount, ToyPenalty, ToyRun, ToyShelf, ToySweep

from t1x.config import Origin, load

BASE = "import toy_components\nToyRun.steps = 3\nToyRun.prize = @ToyCount()\n"


def test_bindings_and_defaults(write):
    resolved = load(write("a.gin", BASE + "ToyCount.divisor = 4\n"))
    assert resolved.root == ToyRun(steps=3, prize=ToyCount(divisor=4))
    assert resolved.notes == ()


def test_block_syntax_binds_like_single_lines(write):
    path = write(
        "a.gin",
        "import toy_components\nToyRun:\n    # a comment\n    steps = 3\n\n    prize = @ToyCount()\nToyCount:\n  divisor = 4\n",
    )
    resolved = load(path)
    assert resolved.root == ToyRun(steps=3, prize=ToyCount(divisor=4))
    assert resolved.origins["ToyRun.prize"] == Origin("a.gin", 6)


def test_every_field_has_an_origin(write):
    resolved = load(write("a.gin", BASE + "ToyCount.divisor = 4\n"), set=["ToyRun.name = 'x'", "ToyShelf.size = 9"])
    assert resolved.origins["ToyRun.steps"] == Origin("a.gin", 2)
    assert resolved.origins["ToyRun.prize.divisor"] == Origin("a.gin", 4)
    assert str(resolved.origins["ToyRun.prize.divisor"]) == "a.gin:4"
    assert str(resolved.origins["ToyRun.name"]) == "--set \"ToyRun.name = 'x'\""
    assert str(resolved.origins["ToyRun.basket.size"]) == "--set 'ToyShelf.size = 9'"
    assert resolved.origins["ToyRun.basket"] is None
    assert resolved.origins["ToyRun.actor.lr"] is None
    fields = {f"ToyRun.{name}" for name in ToyRun.model_fields}
    below = {"ToyRun.prize.divisor", "ToyRun.basket.size", "ToyRun.actor.lr", "ToyRun.critic.lr"}
    assert set(resolved.origins) == fields | below


def test_origins_reach_into_containers(write):
    text = (
        BASE + "ToyRun.paints = [@ToyLacquer(), @b/ToyLacquer()]\nb/ToyLacquer.layers = 2\nToyRun.more = {'first': @ToyCount()}\n"
    )
    origins = load(write("a.gin", text)).origins
    assert origins["ToyRun.paints[0].layers"] is None
    assert origins["ToyRun.paints[1].layers"] == Origin("a.gin", 5)
    assert "ToyRun.more['first'].divisor" in origins


def test_references_in_containers(write):
    text = BASE + "ToyRun.more = {'a': @ToyCount(), 'b': @ToyPenalty()}\nToyPenalty.inner = @ToyCount()\nToyCount.divisor = 2\n"
    root = load(write("a.gin", text)).root
    assert root.more == {"a": ToyCount(divisor=2), "b": ToyPenalty(inner=ToyCount(divisor=2))}


@pytest.mark.parametrize(
    ("bindings", "inside_a", "inside_a_b"),
    [
        ("ToyCount.divisor = 1", 1, 1),
        ("ToyCount.divisor = 1\na/ToyCount.divisor = 2", 2, 2),
        ("a/ToyCount.divisor = 2\nToyCount.divisor = 1", 2, 2),
        ("a/b/ToyCount.divisor = 3\na/ToyCount.divisor = 2\nToyCount.divisor = 1", 2, 3),
    ],
)
def test_the_most_specific_scope_wins(write, bindings, inside_a, inside_a_b):
    text = BASE.replace("@ToyCount()", "@a/ToyCount()") + "ToyRun.more = {'x': @a/b/ToyCount()}\n" + bindings
    root = load(write("a.gin", text)).root
    assert root.prize == ToyCount(divisor=inside_a)
    assert root.more["x"] == ToyCount(divisor=inside_a_b)


def test_a_scope_is_a_prefix_of_names_not_of_letters(write):
    text = BASE.replace("@ToyCount()", "@ab/ToyCount()") + "ToyRun.more = {'x': @a/ToyCount()}\na/ToyCount.divisor = 2\n"
    root = load(write("a.gin", text)).root
    assert root.prize == ToyCount()
    assert root.more["x"] == ToyCount(divisor=2)


def test_an_unscoped_reference_inherits_the_scope_and_a_scoped_one_replaces_it(write):
    text = (
        BASE.replace("@ToyCount()", "@a/ToyPenalty()")
        + "ToyPenalty.inner = @ToyCount()\nToyRun.more = {'x': @c/ToyPenalty()}\nc/ToyPenalty.inner = @d/ToyCount()\n"
        + "a/ToyCount.divisor = 2\nc/ToyPenalty.weight = 0.25\nd/ToyCount.divisor = 3\n"
    )
    root = load(write("a.gin", text)).root
    assert root.prize == ToyPenalty(inner=ToyCount(divisor=2))
    assert root.more["x"] == ToyPenalty(inner=ToyCount(divisor=3), weight=0.25)


def test_a_default_component_takes_bindings_over_its_own_values(write):
    resolved = load(write("a.gin", BASE + "ToyShelf.size = 7\nToyRun.actor = @ToyAdam()\n"))
    assert resolved.root.basket == ToyShelf(size=7)
    assert resolved.root.actor == ToyAdam(lr=1e-3), "a reference starts from the class"
    assert resolved.root.critic == ToyAdam(lr=0.5), "a default that nothing binds stays as it is"
    assert load("a.gin", set=["ToyAdam.lr = 2.0"]).root.critic == ToyAdam(lr=2.0)


def test_macros_are_read_where_they_are_used_and_the_last_definition_wins(write):
    text = "import toy_components\nN = 1\n"
    text += "TOP = %N\nToyRun.steps = %TOP\nPRIZE = @ToyCount()\nToyRun.prize = %PRIZE\nToyRun.more = {'a': %PRIZE}\n"
    path = write("a.gin", text)
    assert load(path).root == ToyRun(steps=1, prize=ToyCount(), more={"a": ToyCount()})
    resolved = load(path, set=["N = 2"])
    assert resolved.root.steps == 2
    assert resolved.origins["ToyRun.steps"] == Origin("a.gin", 4)


def test_the_last_statement_wins(write):
    write("one.gin", "ToyRun.steps = 1\nToyRun.name = 'one'\n")
    write("two.gin", "ToyRun.steps = 2\nToyRun.prize = @ToyCount()\n")
    path = write(
        "a.gin",
        "import toy_components\ninclude 'one.gin'\ninclude 'two.gin'\n"
        "ToyRun.prize = @ToyPenalty()\nToyPenalty.inner = @ToyCount()\n",
    )
    root = load(path, set=["ToyPenalty.weight = 1.0", "ToyPenalty.weight = 2.0"]).root
    assert root == ToyRun(steps=2, name="one", prize=ToyPenalty(inner=ToyCount(), weight=2.0))


def test_loading_leaves_gin_and_other_loads_alone(write):
    registered = set(gin.config._REGISTRY._selector_map)
    first = load(write("a.gin", BASE + "ToyCount.divisor = 4\n"))
    second = load(write("b.gin", BASE))
    assert first.root.prize == ToyCount(divisor=4)
    assert second.root.prize == ToyCount()
    assert not gin.config._CONFIG
    assert set(gin.config._REGISTRY._selector_map) == registered


def test_what_was_replaced_leaves_a_note_for_each_component(write):
    text = "ToyPenalty.inner = @ToyCount()\nToyPenalty.weight = 1.0\nToyCount.divisor = 4\n"
    path = write("a.gin", BASE.replace("@ToyCount()", "@ToyPenalty()") + text)
    resolved = load(path, set=["ToyRun.prize = @ToyCount()"])
    assert resolved.root.prize == ToyCount(divisor=4)
    assert resolved.notes == (
        "a.gin:4, 5 set ToyPenalty.inner and ToyPenalty.weight, which aren't used: no ToyPenalty is in the tree any more",
    )


def test_a_replaced_setting_leaves_a_note_of_its_own(write):
    path = write("a.gin", BASE.replace("@ToyCount()", "@a/ToyPenalty()") + "ToyPenalty.inner = @ToyCount()\n")
    resolved = load(path, set=["a/ToyPenalty.weight = 1.0", "ToyRun.prize = @ToyPenalty()"])
    assert resolved.notes == (
        "--set 'a/ToyPenalty.weight = 1.0' sets a/ToyPenalty.weight, which isn't used: "
        "no ToyPenalty is built in the scope a any more",
    )


def test_a_replaced_default_leaves_a_note_too(write, tmp_path, monkeypatch):
    write("toy_sgd.py", "import toy_components\nclass ToySgd(toy_components.ToyOptimizer):\n    'Plain.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = write("a.gin", BASE + "ToyAdam.lr = 3.0\n")
    resolved = load(path, set=["import toy_sgd", "ToyRun.actor = @ToySgd()", "ToyRun.critic = @ToySgd()"])
    assert [note.partition(", which")[0] for note in resolved.notes] == ["a.gin:4 sets ToyAdam.lr"]


def test_a_file_may_begin_with_a_byte_order_mark(write):
    assert load(write("a.gin", "\ufeff" + BASE)).root.steps == 3


def test_a_root_that_another_root_holds_is_not_the_top(write):
    path = write("a.gin", BASE + "ToySweep.base = @ToyRun()\n")
    assert load(path).root == ToySweep(base=ToyRun(steps=3, prize=ToyCount()))


def test_what_was_resolved_shows_itself_in_one_short_line(write):
    assert repr(load(write("a.gin", BASE))) == "Resolved('a.gin', site=None, root=ToyRun)"

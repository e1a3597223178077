"""What a user is told: every problem of a file, each with its place and what to do."""

import pytest
from toy_components import ToyRun

from t1x.config import ConfigError, load

BASE = "import toy_components\nToyRun.steps = 3\nToyRun.prize = @ToyCount()\n"
"""Three lines, so that what a test adds starts in line 4."""


def problems(path, **kwargs) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, **kwargs)
    assert isinstance(caught.value, ValueError)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("added", "line", "parts"),
    [
        ("ToyCuont.divisor = 1", 4, ["no component is called ToyCuont", "did you mean 'ToyCount'?"]),
        ("Qzxv.divisor = 1", 4, ["no component is called Qzxv", "t1x list", "import"]),
        ("ToyRun.basket = @ToyShelff()", 4, ["no component is called ToyShelff", "did you mean 'ToyShelf'?"]),
        ("ToyPrize.divisor = 1", 4, ["ToyPrize is a kind", "ToyCount, ToyPenalty"]),
        ("ToyRun.prize.divisor = 1", 4, ["ToyRun.prize is a field", "component's own name", "divisor is a field of ToyCount"]),
        ("ToyRun.paints = @ToyLacquer()", 4, ["ToyRun.paints takes a list, not @ToyLacquer() alone; write [@ToyLacquer()]"]),
        ("ToyRun.actor = @ToyAdam(lr=1)", 4, ["syntax error: a reference takes no arguments", "Name.field = value"]),
        ("ToyCount.divisr = 1", 4, ["ToyCount has no field divisr", "did you mean 'divisor'?"]),
        ("ToyCount.lr = 1.0", 4, ["ToyCount has no field lr", "lr is a field of", "ToyAdam"]),
        ("ToyCount.qzxv = 1", 4, ["ToyCount has no field qzxv", "t1x list ToyCount"]),
        ("ToyCount.divisor = 'many'", 4, ["ToyCount.divisor = 'many'", "valid integer"]),
        ("ToyCount.divisor = 0", 4, ["ToyCount.divisor = 0", "greater than or equal to 1"]),
        ("ToyCount.divisor = '5'", 4, ["ToyCount.divisor = '5'", "would become 5"]),
        ("ToyCount.divisor = True", 4, ["ToyCount.divisor = True", "would become 1"]),
        ("ToyRun.flag = 0", 4, ["ToyRun.flag = 0", "would become False"]),
        ("ToyRun.flag = 'False'", 4, ["ToyRun.flag = 'False'", "would become False"]),
        ("ToyRun.name = 'a/b'", 4, ["ToyRun.name = 'a/b': a name has no slash"]),
        ("N = 0\nToyCount.divisor = %N", 5, ["ToyCount.divisor = 0 (from %N)", "greater than or equal to 1"]),
        ("ToyRun.basket = @ToyCount()", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf())", "not @ToyCount(), a ToyPrize"]),
        ("ToyRun.basket = 5", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not 5"]),
        ("ToyRun.basket = 'shelf'", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not 'shelf'"]),
        ("ToyRun.basket = 'ToyShelf'", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not 'ToyShelf'; write @ToyShelf()"]),
        ("ToyRun.basket = 'ToyCount'", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not 'ToyCount'"]),
        ("ToyRun.basket = @ToyCuont()", 4, ["no component is called ToyCuont; `t1x list ToyBasket` shows", "import"]),
        ("ToyRun.paints = [@ToyLaquer()]", 4, ["no component is called ToyLaquer; did you mean 'ToyLacquer'?"]),
        ("ToyRun.basket = None", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not None"]),
        ("ToyRun.basket = {}", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not {}"]),
        ("ToyRun.basket = {'size': 3}", 4, ["ToyRun.basket takes a ToyBasket (@ToyShelf()), not {'size': 3}"]),
        ("ToyRun.paints = [@ToyCount()]", 4, ["ToyRun.paints takes a ToyPaint (@ToyLacquer()), not @ToyCount(), a ToyPrize"]),
        ("ToyRun.more = {'a': {}}", 4, ["ToyRun.more takes a ToyPrize", "not {'a': {}}"]),
        ("ToyRun.basket = @ToyShelf", 4, ["@ToyShelf needs parentheses: @ToyShelf()"]),
        ("ToyRun.name = %NAME", 4, ["the macro %NAME isn't defined"]),
        ("NAME = 'a'\nToyRun.name = [%NAME, %NAMES]", 5, ["the macro %NAMES isn't defined", "did you mean 'NAME'?"]),
        ("UNUSED = 1", 4, ["the macro UNUSED isn't used"]),
        ("divisor = 1", 4, ["the macro divisor isn't used; divisor is a field of ToyCount"]),
        ("A = [%A]\nToyRun.name = %A", 4, ["the macro %A stands for itself"]),
        ("ToyPenalty.weight = 1.0", 4, ["ToyPenalty.weight reaches nothing", "no ToyPenalty is in the tree"]),
        (
            "a/ToyShelf.size = 2",
            4,
            ["a/ToyShelf.size reaches nothing", "built without a scope; write ToyShelf.size", "@a/ToyShelf()"],
        ),
        ("a/ToyCount.divisor = 2", 4, ["a/ToyCount.divisor reaches nothing", "@a/ToyCount()"]),
        ("a/ToyRun.name = 'x'", 4, ["a/ToyRun.name reaches nothing", "write ToyRun.name"]),
        ("ToyRun.steps = 4", 4, ["ToyRun.steps is set twice in this file, first in line 2"]),
        ("ToyRun.name = abc", 4, ["can't read abc", "'abc'"]),
        ("ToyRun.flag = true", 4, ["can't read true", "did you mean True?"]),
        ("ToyRun.name 'x'", 4, ["syntax error"]),
        ("ToyRun.name = ", 4, ["syntax error"]),
        ("ToyRun.name = 'x' 5", 4, ["syntax error"]),
        ("ToyRun.name = {[1]: 2}", 4, ["syntax error", "unhashable"]),
        ("ToyRun.paints = [1,\n2", 6, ["syntax error", "isn't closed"]),
        ("ToyRun.name = 'x", 4, ["syntax error"]),
        ("ToyCount:\n    divisor = 1\n  x = 2", 6, ["syntax error", "indent"]),
        ("import toy_components_missing", 4, ["import toy_components_missing fails", "ModuleNotFoundError", "PYTHONPATH"]),
    ],
)
def test_one_problem(write, added, line, parts):
    found = problems(write("a.gin", BASE + added + "\n"))
    where = [problem for problem in found if problem.startswith(f"a.gin:{line}: ")]
    assert len(where) == 1, found
    for part in parts:
        assert part in where[0]
    assert found == where


def test_missing_required_fields_say_what_they_take_and_mean(write):
    found = problems(write("a.gin", "import toy_components\nToyRun.name = 'x'\n"))
    assert found == [
        "a.gin:2: ToyRun.steps is missing and has no default. How often.",
        "a.gin:2: ToyRun.prize is missing and has no default; it takes a ToyPrize (@ToyCount(), @ToyPenalty()). What it is worth.",
    ]
    found = problems(write("b.gin", BASE.replace("@ToyCount()", "@ToyPenalty()")))
    assert [problem.partition(" is missing")[0] for problem in found] == ["b.gin:3: ToyPenalty.inner"]


def test_a_file_that_could_not_be_read_in_full_is_not_said_to_miss_anything(write):
    assert problems(write("a.gin", "import toy_components\nToyRun.steps = abc\nToyRun.prize = @ToyCount()\n")) == [
        "a.gin:2: syntax error: can't read abc; text stands in quotes: 'abc'"
    ]
    (problem,) = problems(write("b.gin", "import toy_components\ninclude 'toy_missing.gin'\nToyRun.steps = 1\n"))
    assert "can't find 'toy_missing.gin'" in problem
    (problem,) = problems(write("c.gin", "ToyRun.steps 1\n"))
    assert "c.gin:1: syntax error" in problem


def test_a_misspelt_required_field_is_one_problem(write):
    assert problems(write("a.gin", BASE.replace("ToyRun.steps", "ToyRun.stepz"))) == [
        "a.gin:2: ToyRun has no field stepz; did you mean 'steps'?"
    ]
    found = problems(write("b.gin", BASE.replace("ToyRun.steps", "ToyRun.qzxv")))
    assert [problem.partition(";")[0].partition(" and")[0] for problem in found] == [
        "b.gin:2: ToyRun has no field qzxv",
        "b.gin:3: ToyRun.steps is missing",
    ]


def test_what_a_failed_import_may_declare_is_not_said_to_be_unknown(write):
    text = BASE + "import toy_missing\nToyRun.basket = @ToyCrate()\nToyCrate.size = 1\nToyRun.prise = 1\nToyPrize.divisor = 1\n"
    imports, field, kind = problems(write("a.gin", text))
    assert imports.startswith("a.gin:4: import toy_missing fails")
    assert field.startswith("a.gin:7: ToyRun has no field prise")
    assert kind.startswith("a.gin:8: ToyPrize is a kind")


def test_what_may_be_meant_for_a_field_that_is_not_built_is_not_said_to_reach_nothing(write):
    prize = "a.gin:3: ToyRun.prize takes a ToyPrize (@ToyCount(), @ToyPenalty()), not @ToyAdam(), a ToyOptimizer"
    assert problems(write("a.gin", BASE.replace("@ToyCount()", "@ToyAdam()") + "ToyCount.divisor = 2\n")) == [prize]
    number = BASE.replace("3", "'x'") + "ToyPenalty.weight = 1.0\n"
    assert [problem.partition(":")[2][:1] for problem in problems(write("b.gin", number))] == ["2", "4"]


def test_a_rule_names_the_place_of_a_field_of_a_part(write):
    write("a.gin", "include 'experiments/quickstart.gin'\n")
    (problem,) = problems(write("b.gin", "include 'a.gin'\nShellHarness.context_tokens = 9000\n"))
    assert problem.startswith("b.gin:2: Campaign: harness ShellHarness lets a trial grow to 9000 tokens")
    assert problem.endswith("harness.context_tokens at b.gin:2)")
    (problem,) = problems(write("c.gin", "include 'a.gin'\nQwen3Moe.max_position_embeddings = 64\n"))
    assert "model.max_position_embeddings at c.gin:2" in problem


def test_a_rule_between_fields_names_the_places_of_those_it_speaks_of(write):
    (problem,) = problems(write("a.gin", BASE + "\nToyRun.flag = True\n"))
    assert problem == "a.gin:2: ToyRun: a flagged toy runs an even number of steps (steps at a.gin:2)"
    (problem,) = problems(write("b.gin", BASE + "ToyRun.flag = True\nToyRun.name = 'silent'\n"))
    assert problem == "b.gin:2: ToyRun: no (steps at b.gin:2, prize at b.gin:3, flag at b.gin:4, name at b.gin:5)"


def test_a_broken_part_costs_one_problem(write):
    """The invariant of build.py: what holds the broken part isn't reported too."""
    text = (
        BASE.replace("@ToyCount()", "@ToyPenalty()") + "ToyPenalty.inner = @ToyCount()\nToyCount.divisor = 0\nToyRun.flag = True\n"
    )
    (problem,) = problems(write("a.gin", text))
    assert problem.startswith("a.gin:5: ToyCount.divisor = 0")


def test_all_problems_of_a_file_are_printed_in_order(write):
    """The invariant of problem.py."""
    text = (
        "import toy_components\n"
        "ToyRun.basket = @ToyShelff()\n"
        "ToyRun.steps = 'x'\n"
        "ToyRun.prize = @ToyCount()\n"
        "ToyCount.divisor = [1,\n"
        "    2 3,\n"
        "]\n"
        "ToyRun.name = true\n"
        "ToyRun.nam = 1\n"
        "UNUSED = 2\n"
    )
    path = write("a.gin", text)
    found = problems(path, set=["ToyRun.flag = 3", "ToyRun.x = 1"])
    assert [problem.partition(": ")[0] for problem in found] == [
        *(f"a.gin:{line}" for line in (2, 3, 6, 8, 9, 10)),
        "--set 'ToyRun.flag = 3'",
        "--set 'ToyRun.x = 1'",
    ]
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).splitlines()[0] == "6 problems"
    assert len(str(caught.value).splitlines()) == 7


def test_a_single_problem_prints_as_one_line(write):
    with pytest.raises(ConfigError) as caught:
        load(write("a.gin", BASE + "ToyCount.divisor = 0\n"))
    assert str(caught.value) == "a.gin:4: ToyCount.divisor = 0: should be greater than or equal to 1"


def test_components_that_hold_themselves(write):
    path = write("a.gin", BASE.replace("@ToyCount()", "@ToyPenalty()") + "ToyPenalty.inner = @ToyPenalty()\n")
    (problem,) = problems(path)
    assert problem.startswith("a.gin:4: ToyRun.prize.inner: ToyPenalty would hold itself")
    root = load(path, set=["ToyPenalty.inner = @in/ToyPenalty()", "in/ToyPenalty.inner = @ToyCount()"]).root
    assert isinstance(root, ToyRun)
    assert root.prize.inner.inner.divisor == 20


def test_what_hangs_on_an_unreached_component_is_unreached_too(write):
    found = problems(write("a.gin", BASE + "ToyPenalty.inner = @a/ToyLacquer()\na/ToyLacquer.layers = 2\n"))
    assert [problem.partition(" reaches")[0] for problem in found] == ["a.gin:4: ToyPenalty.inner", "a.gin:5: a/ToyLacquer.layers"]
    assert all("is in the tree" in problem for problem in found)


def test_a_broken_part_that_is_used_twice_costs_one_problem(write):
    (problem,) = problems(write("a.gin", BASE + "ToyRun.more = {'a': @ToyCount()}\nToyCount.divisor = 0\n"))
    assert problem.startswith("a.gin:5: ToyCount.divisor = 0")


def test_settings_have_problems_of_their_own(write):
    path = write("a.gin", BASE)
    assert problems(path, set=["ToyRun.steps = 1", "ToyRun.stps = 2"]) == [
        "--set 'ToyRun.stps = 2': ToyRun has no field stps; did you mean 'steps'?"
    ]
    assert "sets nothing" in problems(path, set=[""])[0]
    assert problems(path, set=["include 'missing.gin'"]) == [
        "--set \"include 'missing.gin'\": can't find 'missing.gin' in the working directory, or in the t1x package"
    ]
    assert problems(path, set=["ToyRun.steps 1"])[0].startswith("--set 'ToyRun.steps 1': syntax error")
    assert problems(path, set=["ToyRun.paints = [1,\n2"])[0].startswith("--set 'ToyRun.paints = [1,\\n2': syntax error")


def test_a_long_setting_is_cut_in_the_middle(write):
    (problem,) = problems(write("a.gin", BASE), set=[f"ToyRun.paints = [{', '.join('abcdefghijklmnop')}, @ToyCount()]"])
    assert problem.startswith("--set 'ToyRun.paints = [a, b, c, d, e, f, g, h,…, o, p, @ToyCount()]': ")


def test_a_binding_in_a_scope_where_nothing_is_built_names_those_where_something_is(write):
    prizes = "ToyRun.more = {'x': @train/ToyPenalty(), 'y': @demo/ToyPenalty()}\nToyPenalty.inner = @ToyCount()\n"
    write("a.gin", BASE + prizes)
    for scope, advice in [
        ("trian", "did you mean 'train'?"),
        ("qzxv", "write e.g. demo/ToyPenalty.weight"),
        ("more_x", "for ToyRun.more['x'] write train/ToyPenalty.weight"),
    ]:
        (problem,) = problems("a.gin", set=[f"{scope}/ToyPenalty.weight = 1.0"])
        assert problem.endswith(f" reaches nothing: ToyPenalty is built in the scopes demo, train; {advice}"), problem
    (problem,) = problems("a.gin", set=["ToyRun.basket = @b/ToyShelf()", "qzxv/ToyShelf.size = 1"])
    assert problem.endswith("ToyShelf is built in the scope b; write b/ToyShelf.size")
    (problem,) = problems("a.gin", set=["ToyRun.actor = @b/ToyAdam()", "qzxv/ToyAdam.lr = 1.0"])
    assert problem.endswith("ToyAdam is built in the scope b and without one; write b/ToyAdam.lr")


def test_files_without_one_root(write):
    (problem,) = problems(write("a.gin", "import toy_components\nToyCount.divisor = 1\n"))
    assert "nothing to build" in problem
    assert "ToyRun" in problem
    assert "nothing to build" in problems(write("b.gin", ""))[0]
    (problem,) = problems(write("c.gin", BASE + "ToySweep.base = @ToyCount()\n"))
    assert problem == "c.gin: a file describes one root, and this one describes 2: ToyRun at c.gin:2, ToySweep at c.gin:4"


def test_a_missing_file_names_one_that_is_near(write):
    write("toys/quickstart.gin", BASE)
    with pytest.raises(FileNotFoundError, match=r"there is no file toys/quikstart\.gin; did you mean 'toys/quickstart\.gin'\?"):
        load("toys/quikstart.gin")
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere/at_all\.gin$"):
        load("nowhere/at_all.gin")


def test_a_file_that_is_not_text(write, tmp_path):
    write("a.gin", "")
    (tmp_path / "a.gin").write_bytes(b"ToyRun.name = '\xff\xfe'\n")
    assert any("UTF-8" in problem for problem in problems("a.gin"))

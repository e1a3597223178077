"""A component's methods take what those of its kind take."""

import abc
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property, partialmethod
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator

from t1x.cli import main
from t1x.config import Component
from t1x.config.overriding import takes

NAMES = ("a", "b", "c")
SIGNATURES = st.tuples(
    st.permutations(NAMES),
    st.integers(0, 3),  # of them there are so many
    st.integers(0, 3),  # by place alone, before
    st.integers(0, 3),  # by keyword alone, from
    st.integers(0, 3),  # with a default, from
    st.booleans(),
    st.booleans(),
)


def function(drawn: tuple) -> Callable[..., dict]:
    """One that gives what each of its parameters got."""
    names, count, before, from_, defaults, places, keywords = drawn
    parts = [name + "='default'" * (at >= defaults) for at, name in enumerate(names[:count])]
    by_place, either, named = parts[:before], parts[before : max(before, from_)], parts[max(before, from_) :]
    head = [*by_place, *["/"] * bool(by_place), *either, *(["*args"] if places else ["*"] * bool(named)), *named]
    scope: dict = {}
    exec(f"def f({', '.join(head + ['**rest'] * keywords)}): return locals()", scope)
    return scope["f"]


def calls(due: Callable[..., dict]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """All that fit, with each argument the name of the parameter that it's for, "any" where that has no name for a caller."""
    parameters = inspect.signature(due).parameters.values()
    places = [
        "any" if each.kind is each.POSITIONAL_ONLY else each.name
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ] + ["any"] * 5
    names = [each.name for each in parameters if each.name in NAMES]
    keywords = chain.from_iterable(combinations((*names, "z"), size) for size in range(5))
    for count, chosen in product(range(len(places) + 1), keywords):
        arguments = places[:count], {name: "any" if name == "z" else name for name in chosen}
        try:
            due(*arguments[0], **arguments[1])
        except TypeError:
            continue
        if not any(each.kind is each.POSITIONAL_ONLY and each.name in chosen for each in parameters):
            yield arguments


def fits(found: Callable[..., dict], places: list[str], keywords: dict[str, str]) -> bool:
    try:
        got = found(*places, **keywords)
    except TypeError:
        return False
    return all(got[name] == name or (got[name] in ("any", "default") and name not in keywords) for name in NAMES if name in got)


@given(SIGNATURES, SIGNATURES)
def test_an_overriding_method_takes_every_call_that_the_overridden_one_takes(one: tuple, other: tuple) -> None:
    due, found = function(one), function(other)
    assert takes(inspect.signature(found), inspect.signature(due)) == all(fits(found, *call) for call in calls(due))


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> type[Component]:
    monkeypatch.setattr(Component, "registry", dict(Component.registry))
    monkeypatch.setattr(Component, "kinds", dict(Component.kinds))

    class Baker(Component):
        """A kind."""

        def bake(self, flour: float, *, water: float = 0.7) -> str:
            raise NotImplementedError

        async def deliver(self, loaf: str) -> None:
            raise NotImplementedError

        @classmethod
        def hired(cls, year: int) -> int:
            return year

    return Baker


def test_what_takes_more_or_takes_it_in_another_way_is_a_component(kind: type[Component]) -> None:
    class Careful(kind):
        """More parameters, with defaults."""

        def bake(self, flour, *, water=0.8, salt=0.02):
            return f"{flour}"

        @staticmethod
        def hired(year):
            return year

    class Lazy(Careful):
        """Whatever there is."""

        def bake(self, *args, **kwargs):
            return super().bake(*args, **kwargs)

        async def deliver(self, loaf, *others):
            pass

    assert Lazy().bake(1.0, water=2) == "1.0"
    assert Component.registry.keys() >= {"Careful", "Lazy"}


def test_what_is_no_plain_method_is_a_component_where_it_can_be_called_so(kind: type[Component]) -> None:
    """Decorated, bound in part, called by Pydantic alone, abstract on the way."""

    def told(method):
        @functools.wraps(method)
        def inner(*args, **kwargs):
            return method(*args, **kwargs)

        return inner

    def salted(method):
        @functools.wraps(method)
        def inner(self, flour, *, water=0.7):
            return method(self, 0.02, flour, water)

        return inner

    class Exact(kind, abc.ABC):
        """A kind's component that isn't whole."""

        scale: int = 1
        """Of its flour."""

        @field_validator("scale")
        @classmethod
        def positive(cls, scale):
            return abs(scale)

        @abc.abstractmethod
        def bake(self, flour, *, water=0.7): ...

        @contextmanager
        def oven(self, heat):
            yield heat

        @property
        def open(self):
            return True

    class Told(Exact):
        """Whole."""

        @salted
        def bake(self, salt, flour, water):
            return f"{salt} {flour} {water}"

        @told
        async def deliver(self, loaf):
            pass

        @field_validator("scale")
        @classmethod
        def positive(cls, scale, info):
            return abs(scale)

        def oven(self, heat):
            return nullcontext(heat + 1)

        @cached_property
        def open(self):
            return False

    class Partly(Told):
        """Of another method."""

        def mixed(*args, **kwargs):
            return f"{args[1:]} {kwargs}"

        bake = partialmethod(mixed, 0.03)

        @classmethod
        @told
        def hired(cls, year):
            return year

        @contextmanager
        def oven(self, heat):
            yield heat + 2

    assert Told(scale=-2).bake(1.0) == "0.02 1.0 0.7"
    assert Told(scale=-2).scale == 2
    with Told().oven(1) as one, Partly().oven(1) as two:
        assert (one, two) == (2, 3)
    assert Partly().bake(1.0, water=2) == "(0.03, 1.0) {'water': 2}"


@pytest.mark.parametrize("made", [property, cached_property])
def test_a_property_in_a_methods_place_is_refused(kind: type[Component], made: Callable) -> None:
    with pytest.raises(ValueError, match=r"Rash overrides Baker\.hired, which is called, with a property; make it a method"):
        type("Rash", (kind,), {"__module__": "shop", "hired": made(lambda self: 1)})
    assert "Rash" not in Component.registry


def test_what_takes_something_else_is_refused_with_both_signatures(kind: type[Component]) -> None:
    def baker(method: Callable) -> None:
        type("Rash", (kind,), {"__module__": "shop", method.__name__: method})

    def bake(self, flour: float): ...

    message = r"Rash overrides Baker\.bake and is called like it, but has bake\(self, flour\) instead of "
    with pytest.raises(ValueError, match=message + r"bake\(self, flour, \*, water=0\.7\); give it these parameters"):
        baker(bake)

    def bake(self, water, *, flour=0.7): ...

    with pytest.raises(ValueError, match=r"Rash overrides Baker\.bake"):
        baker(bake)

    def deliver(self, loaf): ...

    with pytest.raises(ValueError, match=r"has deliver\(self, loaf\) instead of async deliver\(self, loaf\)"):
        baker(deliver)

    def hired(year): ...

    with pytest.raises(ValueError, match=r"has hired\(year\) instead of hired\(cls, year\)"):
        baker(hired)
    assert "Rash" not in Component.registry


def test_an_own_stitcher_that_can_not_be_called_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    source = "from t1x.trajectory.stitcher import TokenStitcher\nclass HalvingStitcher(TokenStitcher):\n    'Of halves.'\n"
    (tmp_path / "halves.py").write_text(f"{source}    def build(self, tokenizer): ...\n")
    (tmp_path / "mine.gin").write_text("import halves\n")
    assert main(["check", "mine.gin"]) == 2
    assert (
        "mine.gin:1: import halves fails: ValueError: HalvingStitcher overrides TokenStitcher.build and is called like it, but has "
        "build(self, tokenizer) instead of build(self, tokenizer, layout); give it these parameters (further ones need a default)"
    ) in " ".join(capsys.readouterr().err.split())

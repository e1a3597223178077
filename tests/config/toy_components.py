"""Kinds and components that only the tests of config/ and cli/ know. They are registered under names that nothing else has."""

from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from t1x.config import Component, Role, Root


class ToyPrize(Component):
    """What a toy is worth."""


class ToyCount(ToyPrize):
    """A count of things."""

    divisor: Annotated[int, Role.SCALE, Field(ge=1, le=1000)] = 20
    """What the count is divided by."""


class ToyPenalty(ToyPrize):
    """A prize with something taken off."""

    inner: ToyPrize
    """The prize that it takes from."""
    weight: float = 0.5
    """How much is taken."""


class ToyBasket(Component):
    """Where toys come from."""


class ToyShelf(ToyBasket):
    """Toys on a shelf."""

    size: int = 4
    """Number of toys."""


class ToyColour(StrEnum):
    RED = "red"
    BLUE = "blue"


class ToyLevel(Enum):
    LOW = 1
    HIGH = 2


class ToyOptimizer(Component):
    """How a toy learns."""


class ToyAdam(ToyOptimizer):
    """Adam for toys."""

    lr: float = 1e-3
    """Learning rate."""


class ToyPaint(Component):
    """How a toy looks."""


class ToyLacquer(ToyPaint):
    """Has a field of every plain type."""

    colour: ToyColour = ToyColour.RED
    level: ToyLevel = ToyLevel.LOW
    shine: Literal["matt", "gloss"] = "matt"
    thickness: float = 0.1
    layers: int = 1
    dry: bool = False
    label: str = ""
    raw: bytes = b""
    file: Path = Path("paint")
    mix: tuple[int | None, ...] = ()
    shares: dict[str, float] = Field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    anything: Any = None


class ToyRun(Root):
    """The root of the tests."""

    steps: int
    """How often."""
    prize: ToyPrize
    """What it is worth."""
    basket: ToyBasket = ToyShelf()
    """Where it comes from."""
    actor: ToyOptimizer = ToyAdam(lr=0.25)
    """How the actor learns."""
    critic: ToyOptimizer = ToyAdam(lr=0.5)
    """How the critic learns."""
    paints: tuple[ToyPaint, ...] = ()
    """Coats of paint."""
    more: dict[str, ToyPrize] = Field(default_factory=dict)
    """Prizes by name."""
    name: str = "toy"
    """What it is called."""
    flag: bool = False
    """Whether."""

    @field_validator("name")
    @classmethod
    def _no_slash(cls, name: str) -> str:
        if "/" in name:
            raise ValueError("a name has no slash")
        if name == "broken":
            raise RuntimeError("a validator with a fault")
        return name

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.flag and self.name == "silent":
            raise ValueError("no")
        if self.flag and self.steps % 2:
            raise ValueError("a flagged toy runs an even number of steps")
        return self


class ToyNest(Root):
    """A root that holds its own kind."""

    inner: Root | None = None
    """What is in it."""
    layers: int = 1
    """How deep."""


class ToySweep(Root):
    """A root that holds another."""

    base: ToyRun
    """What is swept."""

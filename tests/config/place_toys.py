"""Components with fields of every role, for the tests of sites, digests and smoke sizes."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from t1x.config import Component, Role, Root, Smoke


class PlaceGoods(Component):
    """What is worked on."""


class PlaceCrate(PlaceGoods):
    """Goods with a name, from some source."""

    label: str = "apples"
    """What is studied."""
    size: Annotated[int, Role.SCALE, Smoke(3)] = 100
    """How many."""
    where: Annotated[Path, Role.PLACEMENT] = Path("store")
    """Where they are."""


class PlaceMachine(Component):
    """What works."""


class PlaceBench(PlaceMachine):
    """A small machine."""

    precision: str = "single"
    """A result depends on it."""
    cores: Annotated[int, Role.PLACEMENT] = 1
    """How many."""


class PlaceMill(PlaceMachine):
    """A large machine."""

    precision: str = "half"
    """A result depends on it."""


class PlaceBase(Root):
    """What roots share."""

    shared: ClassVar[bool] = True

    machine: Annotated[PlaceMachine, Role.PLACEMENT] = PlaceBench()
    """What works."""


class PlaceRun(PlaceBase):
    """A root."""

    goods: PlaceGoods
    """What is worked on."""
    method: str = "slow"
    """What is studied."""
    batch: Annotated[int, Role.SCALE, Field(ge=1), Smoke(2)] = 8
    """How many at a time."""
    limit: Annotated[int | None, Role.SCALE, Smoke(1)] = None
    """How many in all."""
    seed: Annotated[int, Role.SEED] = 0
    """Of chance."""
    more: dict[str, PlaceGoods] = Field(default_factory=dict)
    """Other goods."""


class PlaceOther(PlaceBase):
    """Another root."""

    depth: int = 1
    """How deep."""

"""The registered unit of an experiment.

Invariants:
- a *kind* is a direct subclass of `Component`; a *component* is a subclass of a kind, registered under its class name;
- a component is frozen, refuses unknown fields and numbers that aren't finite (a field that may be infinite says
  `Field(allow_inf_nan=True)`), and imports nothing heavy: its worker is imported when it is built;
- a method that a component overrides stays a method that takes what that of its kind takes (`overriding` says what isn't judged);
- every field says what it is in a docstring under it, and has a `Role`; one that a subclass declares again keeps both unless it
  says otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from t1x.config.overriding import misfit


class Role(StrEnum):
    """What a field is for; written as `Annotated[int, Role.SCALE]`, `ALGORITHM` where nothing is written."""

    ALGORITHM = "algorithm"
    """What is studied: a site never changes it."""
    SCALE = "scale"
    """Sizes: model, batch, context, and the learning rates that go with a model size."""
    PLACEMENT = "placement"
    """Where and with what it runs."""
    SEED = "seed"
    """Repeats the same study on other random numbers."""


@dataclass(frozen=True, slots=True)
class Smoke:
    """Marks a field, `Annotated[int, Smoke(1)]`, with the value that one tiny step takes; of numbers, the smaller one is taken."""

    value: Any


class Component(BaseModel):
    """Base of every kind. See the module's invariants."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # of the many that are registered a command uses few
    )

    kinds: ClassVar[dict[str, type["Component"]]] = {}
    """Kind name to its class, for every kind that was imported."""
    registry: ClassVar[dict[str, type["Component"]]] = {}
    """Component name to its class, for every component that was imported."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        is_kind = Component in cls.__bases__
        table = Component.kinds if is_kind else Component.registry
        other = Component.kinds.get(cls.__name__) or Component.registry.get(cls.__name__)
        if other is not None and other.__module__ != cls.__module__:
            raise ValueError(f"two components are named {cls.__name__}: {other.__module__} and {cls.__module__}; rename one")
        if wrong := misfit(cls, Component):
            raise ValueError(wrong)
        table[cls.__name__] = cls

    def missing(self) -> list[str]:
        """What this machine lacks to run this component itself (not its parts): one line each, with what to do; nothing heavy is
        imported to find out."""
        return []

    def unusable(self) -> list[str]:
        """What is wrong with what this component itself (not its parts) names, such as a file: one line each, with what to do. `t1x
        check` asks, and `t1x run` before it makes anything. Nothing is said of what isn't here: `missing` does. Nothing that trains
        is imported to find out."""
        return []

    @classmethod
    def kind(cls) -> type["Component"]:
        """The kind this component belongs to: the ancestor just below `Component`."""
        return next(base for base in cls.__mro__ if Component in base.__bases__)

    @classmethod
    def role(cls, field: str) -> Role:
        """The role of one of this component's fields."""
        marks = (mark for info in cls._declarations(field) for mark in info.metadata if isinstance(mark, Role))
        return next(marks, Role.ALGORITHM)

    @classmethod
    def smoke_size(cls, field: str) -> Smoke | None:
        """What one of this component's fields is cut to for one tiny step, if it is."""
        return next((mark for info in cls._declarations(field) for mark in info.metadata if isinstance(mark, Smoke)), None)

    @classmethod
    def _declarations(cls, field: str) -> Iterator[FieldInfo]:
        """A field as this class declares it, then as its ancestors do."""
        for base in cls.__mro__:
            if issubclass(base, Component) and field in base.model_fields:
                yield base.model_fields[field]

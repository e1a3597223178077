"""One tiny step of an experiment: every field that has a `Smoke` mark cut to it."""

from typing import Any, TypeVar

from pydantic import ValidationError

from t1x.config.component import Component
from t1x.config.explain import reasons
from t1x.config.problem import ConfigError, Problem
from t1x.config.walk import rebuilt

AnyComponent = TypeVar("AnyComponent", bound=Component)


def shrink(component: AnyComponent) -> AnyComponent:
    """The same component, and everything in it, with the sizes of a smoke test; None counts as larger than any number. Raises
    `ConfigError` where they don't fit each other."""
    values = {name: rebuilt(getattr(component, name), shrink) for name in type(component).model_fields}
    for name, value in values.items():
        if mark := component.smoke_size(name):
            values[name] = _smaller(value, mark.value)
    try:
        return type(component).model_validate(values)
    except ValidationError as error:
        raise ConfigError([Problem(f"{type(component).__name__} can't be cut to a smoke test: {reasons(error)}")]) from error


def _smaller(value: Any, smoke: Any) -> Any:
    numbers = isinstance(value, int | float) and not isinstance(value, bool)
    return min(value, smoke) if numbers else smoke

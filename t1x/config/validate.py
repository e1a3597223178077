"""A tree that is validated again: `model_copy` puts anything in it."""

from typing import TypeVar

from pydantic import ValidationError

from t1x.config.component import Component
from t1x.config.problem import ConfigError, Problem
from t1x.config.walk import rebuilt

AnyComponent = TypeVar("AnyComponent", bound=Component)


def validated(component: AnyComponent) -> AnyComponent:
    """The same component, with all that it holds. Raises `ConfigError` with what the first one that isn't valid refuses."""
    name = type(component).__name__
    try:
        return type(component).model_validate(
            {field: rebuilt(getattr(component, field), validated) for field in type(component).model_fields}
        )
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConfigError(
            Problem(f"{'.'.join([name, *map(str, each['loc'])])}: {each['msg'].removeprefix('Value error, ')}") for each in details
        ) from error

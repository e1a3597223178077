"""A resolved configuration as MLflow parameters."""

import json
from collections.abc import Iterator, Mapping

from t1x.tracking.log import check_name

MAX_VALUE = 6000
"""Characters that MLflow keeps of a parameter's value (`mlflow.utils.validation.MAX_PARAM_VAL_LENGTH`)."""


def flatten(config: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Dotted name to text: `{"actor": {"lr": 3e-4}}` becomes `{"actor.lr": "0.0003"}`. A mapping in a list is named by its index;
    other lists are JSON. Raises `ValueError` for a name that MLflow refuses and for two values of one name."""
    flat: dict[str, str] = {}
    for name, text in _leaves(config, prefix):
        check_name("parameter", name)
        if name in flat:
            raise ValueError(f"parameter {name!r} is given twice")
        flat[name] = text
    return flat


def shorten(text: str) -> str:
    """The text cut to what MLflow keeps, saying so where it was cut."""
    if len(text) <= MAX_VALUE:
        return text
    note = f" … [cut, {len(text)} characters: whole in params.json]"
    return text[: MAX_VALUE - len(note)] + note


def _leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not name):
        for key, child in value.items():
            yield from _leaves(child, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(child, Mapping) for child in value):
        for index, child in enumerate(value):
            yield from _leaves(child, f"{name}.{index}")
    elif isinstance(value, Mapping | list | tuple):
        yield name, json.dumps(value, default=str)
    else:
        yield name, str(value)

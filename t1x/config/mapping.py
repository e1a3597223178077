"""A tree of components as nested mappings, for whoever wants to store or search it."""

import json
from enum import Enum
from pathlib import PurePath
from typing import Any

from t1x.config.component import Component


def to_mapping(component: Component) -> dict[str, Any]:
    """`{"class": "TestCountReward", "scale": 20.0}`; nested components are nested mappings."""
    return {"class": type(component).__name__} | {name: plain(getattr(component, name)) for name in type(component).model_fields}


def plain(value: Any) -> Any:
    """A field's value as JSON can hold it, a set in an order of its own. Raises `ValueError` for what JSON can't hold."""
    match value:
        case Component():
            return to_mapping(value)
        case Enum():
            return value.value
        case PurePath():
            return str(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        case bytes():
            return value.hex()
        case None | bool() | int() | float() | str():
            return value
    what = f"{value!r} is a {type(value).__name__}, which an experiment can't hold"
    raise ValueError(f"{what}; declare the field as a number, a text, an enum, a list, a dict or a component")

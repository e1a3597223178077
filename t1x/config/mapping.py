"""A tree of components as nested mappings, for whoever wants to store or search it."""

from enum import Enum
from pathlib import PurePath
from typing import Any

from t1x.config.component import Component


def to_mapping(component: Component) -> dict[str, Any]:
    """`{"class": "TestCountReward", "scale": 20.0}`; nested components are nested mappings."""
    return {"class": type(component).__name__} | {name: plain(getattr(component, name)) for name in type(component).model_fields}


def plain(value: Any) -> Any:
    """A field's value as JSON can hold it."""
    match value:
        case Component():
            return to_mapping(value)
        case Enum():
            return value.value
        case PurePath():
            return str(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    return value

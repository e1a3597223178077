"""A field's value as a reader would write it."""

from enum import Enum
from pathlib import PurePath
from typing import Any

from t1x.config import Component


def written(value: Any) -> str:
    """One line, however long. Of a component, the fields that were set: `@TestCountReward(scale=10.0)`."""
    match value:
        case Component():
            bound = ", ".join(f"{name}={written(getattr(value, name))}" for name in sorted(value.model_fields_set))
            return f"@{type(value).__name__}({bound})"
        case Enum():
            return repr(value.value)
        case PurePath():
            return repr(str(value))
        case dict():
            return "{" + ", ".join(f"{key!r}: {written(item)}" for key, item in value.items()) + "}"
        case list() | tuple() if value:
            return f"({', '.join(written(item) for item in value)}{',' if len(value) == 1 else ''})"
    return repr(value)

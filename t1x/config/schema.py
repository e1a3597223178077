"""JSON Schema (draft 2020-12) of components as `to_mapping` writes them, for editors and for whoever reads such a file.

Every component and every kind is a definition: a component has its class name as the constant `class`, a kind is any of its
components. `x-role` is a field's role, `x-kind` a component's kind.
"""

from typing import Any

from pydantic.fields import FieldInfo

from t1x.config.component import Component
from t1x.config.docs import described
from t1x.config.mapping import plain
from t1x.config.names import closest, members
from t1x.config.root import Root

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"


def schema(name: str | None = None) -> dict[str, Any]:
    """The schema of a component or of any component of a kind; of any root where `name` is None. Raises `ValueError` for a name
    that is neither."""
    top = Root.__name__ if name is None else name
    if top not in Component.kinds and top not in Component.registry:
        hint = closest(top, [*Component.kinds, *Component.registry]) or "; `t1x list` shows the kinds"
        raise ValueError(f"no kind or component is called {top}{hint}")
    definitions: dict[str, Any] = {}
    waiting = [top]
    while waiting:
        each = waiting.pop()
        if each not in definitions:
            definitions[each] = _definition(each, definitions)
            waiting += _referred(definitions[each])
    return {"$schema": DIALECT, "title": top, **_any_of(top), "$defs": dict(sorted(definitions.items()))}


def _definition(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A kind's or a component's; the plain types that a component's fields name are added to `definitions`."""
    if kind := Component.kinds.get(name):
        return {"description": _text(kind.__doc__), **_refs(members(kind))}
    component = Component.registry[name]
    made = component.model_json_schema(mode="serialization", ref_template=_REF + "{model}")
    for plain_type, definition in made.get("$defs", {}).items():
        if plain_type not in Component.kinds and plain_type not in Component.registry:
            definitions[plain_type] = definition
    fields = {field: _field(component, field, made["properties"][field]) for field in component.model_fields}
    return {
        "description": _text(component.__doc__),
        "type": "object",
        "properties": {"class": {"const": name}, **fields},
        "required": ["class", *fields],
        "additionalProperties": False,
        "x-kind": component.kind().__name__,
    }


def _field(component: type[Component], name: str, made: dict[str, Any]) -> dict[str, Any]:
    info: FieldInfo = component.model_fields[name]
    about = {"description": described(component, name), "x-role": component.role(name).value}
    if not info.is_required() and not info.default_factory_takes_validated_data:
        about["default"] = plain(info.get_default(call_default_factory=True))
    own = {key: value for key, value in made.items() if key not in ("title", "description", "default")}
    return {**_with_derived(own), **about}


def _with_derived(part: Any) -> Any:
    """The same with each reference to a component that others derive from as any of them."""
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith(_REF):
            return {**{key: value for key, value in part.items() if key != "$ref"}, **_any_of(part["$ref"].removeprefix(_REF))}
        return {key: _with_derived(value) for key, value in part.items()}
    return [_with_derived(item) for item in part] if isinstance(part, list) else part


def _any_of(name: str) -> dict[str, Any]:
    """What a value of this type may be."""
    component = Component.registry.get(name)
    names = members(component) if component and name not in Component.kinds else [name]
    return {"$ref": _REF + name} if len(names) == 1 else _refs(names)


def _refs(names: list[str]) -> dict[str, Any]:
    return {"anyOf": [{"$ref": _REF + name} for name in names]} if names else {"not": {}}


def _referred(part: Any) -> list[str]:
    """Names of the kinds and components that a definition refers to."""
    if isinstance(part, dict):
        here = [str(part["$ref"]).removeprefix(_REF)] if "$ref" in part else []
        found = here + [name for value in part.values() for name in _referred(value)]
    else:
        found = [name for item in part for name in _referred(item)] if isinstance(part, list) else []
    return [name for name in found if name in Component.kinds or name in Component.registry]


def _text(text: str | None) -> str:
    return " ".join((text or "").split())

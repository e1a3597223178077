"""What a user is told about bindings that no component of the tree takes."""

from collections.abc import Iterable, Mapping

from t1x.config.component import Component
from t1x.config.dump import scope_name
from t1x.config.names import closest
from t1x.config.problem import Problem
from t1x.config.statement import Binding, scoped

Scopes = Mapping[str, Mapping[str, str]]
"""By component name: each path in the tree where one is built, with its scope."""


def problem(binding: Binding, scopes: Scopes, root: type[Component]) -> Problem:
    """Why a binding reaches nothing and what to write instead."""
    name = binding.component
    if name == root.__name__:
        reason = f"the root stands in no scope; write {name}.{binding.field}"
    elif binding.scope and name in scopes:
        reason = _elsewhere(binding, scopes[name])
    else:
        reason = f"no {name} is in the tree; bind a field to @{name}(), or remove this"
    return Problem(f"{binding.name} reaches nothing: {reason}", binding.origin)


def _elsewhere(binding: Binding, places: Mapping[str, str]) -> str:
    """For a component that is built, but in other scopes."""
    name, target = binding.component, f"{binding.component}.{binding.field}"
    others = sorted({scope for scope in places.values() if scope})
    if not others:
        return f"{name} is built without a scope; write {target}, or refer to it as @{scoped(binding.scope, name)}()"
    listed = f"the scope{'s' if len(others) > 1 else ''} {', '.join(others[:6])}{', …' if len(others) > 6 else ''}"
    if "" in places.values():
        listed += " and without one"
    same_place = [(path, scope) for path, scope in places.items() if scope and scope_name(path) == binding.scope]
    if same_place:
        path, scope = same_place[0]
        advice = f"; for {path} write {scope}/{target}"
    else:
        advice = closest(binding.scope, others) or f"; write {'e.g. ' if len(others) > 1 else ''}{others[0]}/{target}"
    return f"{name} is built in {listed}{advice}"


def notes(bindings: Iterable[Binding], scopes: Scopes) -> list[str]:
    """One note for all bindings of a file, or of a `--set`, that had the same component before a later statement replaced it."""
    groups: dict[tuple[str, str | None, str], list[Binding]] = {}
    for binding in bindings:
        name = scoped(binding.scope, binding.component)
        groups.setdefault((binding.origin.file, binding.origin.text, name), []).append(binding)
    return [_note(same, scopes) for same in groups.values()]


def _note(same: list[Binding], scopes: Scopes) -> str:
    first = same[0]
    lines = sorted({binding.origin.line for binding in same if binding.origin.line and binding.origin.text is None})
    where = ", ".join([str(first.origin), *map(str, lines[1:])])
    what = " and ".join(dict.fromkeys(binding.name for binding in same))
    sets, used = "sets" if len(lines) < 2 else "set", "isn't used" if len(same) == 1 else "aren't used"
    built = f"built in the scope {first.scope}" if first.component in scopes else "in the tree"
    return f"{where} {sets} {what}, which {used}: no {first.component} is {built} any more"

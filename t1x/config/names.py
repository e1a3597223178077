"""How a user is told of names, and of one that nothing has."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from t1x.config.component import Component


def closest(name: str, options: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no option is near."""
    near = nearest(name, options)
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """The option that `name` may be a misspelling of."""
    by_lower = {option.lower(): option for option in options}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def members(kind: type[Component]) -> list[str]:
    """Names of the components of a kind (or of a component and those derived from it), sorted."""
    return sorted(name for name, component in Component.registry.items() if issubclass(component, kind))


def is_nowhere(name: str) -> bool:
    """Whether nothing that was imported explains the name: a module that wasn't may declare it."""
    return name not in Component.kinds and name.partition(".")[0] not in Component.registry


def unknown_component(name: str, taken: Sequence[type[Component]] = ()) -> str:
    """Why `name` is no component; `taken` are the kinds and components that would do, where that is known."""
    if name in Component.kinds:
        listed = ", ".join(members(Component.kinds[name])) or "none yet"
        return f"{name} is a kind, not a component; its components: {listed}"
    component, dot, field = name.partition(".")
    if dot and component in Component.registry and field in Component.registry[component].model_fields:
        return f"{name} is a field; what it holds is bound by that component's own name"
    options: Iterable[str] = [member for each in taken for member in members(each)] if taken else Component.registry
    command = f"t1x list {taken[0].__name__}" if len(taken) == 1 else "t1x list"
    hint = closest(name, options) or f"; `{command}` shows those there are, and one of your own needs an `import` of its module"
    return f"no component is called {name}{hint}"


def owners(field: str) -> str:
    """`; f is a field of A, B` (at most three), or nothing where no component has such a field."""
    names = sorted(name for name, component in Component.registry.items() if field in component.model_fields)
    return f"; {field} is a field of {', '.join(names[:3])}" if names else ""


def unknown_field(component: type[Component], field: str) -> str:
    """Why `field` is no field of the component."""
    hint = owners(field) + closest(field, component.model_fields) or f"; `t1x list {component.__name__}` shows its fields"
    return f"{component.__name__} has no field {field}{hint}"


def with_article(noun: str) -> str:
    """`a Campaign`, `an Evaluation`."""
    return f"{'an' if noun[0] in 'AEIOU' else 'a'} {noun}"

"""Which root a file describes."""

from t1x.config.component import Component
from t1x.config.names import members, with_article
from t1x.config.problem import ConfigError, Origin, Problem
from t1x.config.root import Root
from t1x.config.statement import Binding, Reference
from t1x.config.table import Table


def top(table: Table, file: str) -> type[Component]:
    """The one root class that has bindings without a scope and that nothing refers to (a class whose fields several roots share is
    none itself). A root may hold others, even of its class: where something refers to each, it is the one referred to with a scope
    only. Raises `ConfigError` unless there is one."""
    places = {binding.component: binding.origin for binding in reversed(table.bindings) if not binding.scope}
    roots = [name for name in places if name in _roots()]
    references = table.references()
    unreferred = [name for name in roots if not any(reference.name == name for reference in references)]
    only_scoped = [name for name in roots if Reference("", name) not in references]
    tops = unreferred or only_scoped or roots
    if len(tops) == 1:
        return Component.registry[tops[0]]
    own = [name for name in tops if any(binding.component == name and binding.origin.text is None for binding in table.bindings)]
    if len(own) == 1:
        raise ConfigError([_meant(binding, own[0]) for binding in table.bindings if binding.component in set(tops) - set(own)])
    if tops:
        listed = ", ".join(f"{name} at {places[name]}" for name in sorted(tops))
        message = f"a file describes one root, and this one describes {len(tops)}: {listed}"
    else:
        message = f"nothing to build: no field of {' or '.join(_roots())} is bound"
    raise ConfigError([Problem(message, Origin(file))])


def _meant(setting: Binding, root: str) -> Problem:
    """What to write instead of a setting of another root than the file's."""
    kin = [each for each in Component.registry[root].mro() if issubclass(each, Root) and setting.field in each.model_fields]
    names = dict.fromkeys([root, *(each.__name__ for each in kin if each is not Root and vars(each).get("shared"))])
    advice = f"write {' or '.join(f'{name}.{setting.field}' for name in names)}" if kin else f"it has no field {setting.field}"
    return Problem(f"this is {with_article(root)} and no {setting.component}; {advice}", setting.origin)


def _roots() -> list[str]:
    """Names of the roots that a file can describe."""
    return [name for name in members(Root) if not vars(Component.registry[name]).get("shared", False)]

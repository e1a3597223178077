"""What is wrong with the statements themselves, whatever tree they make."""

from collections.abc import Collection, Iterator

from t1x.config.annotation import components_in
from t1x.config.component import Component
from t1x.config.names import closest, is_nowhere, owners, unknown_component, unknown_field
from t1x.config.problem import Problem
from t1x.config.statement import Binding, Definition, Macro, Reference, values_in
from t1x.config.table import Table


def check(table: Table, general: Collection[Binding | Definition] = (), imported: bool = True) -> list[Problem]:
    """Problems of names and macros: unknown, undefined, unused, circular, or a reference that isn't called. The macros of
    `general` statements, which many experiments read, needn't be used. Where not everything was `imported`, components that
    nothing explains are left out: a module that failed may declare them."""
    statements: list[Binding | Definition] = [*table.bindings, *table.macros.values()]
    problems = [problem for binding in table.bindings for problem in _binding(binding, imported)]
    for statement in statements:
        problems += _value(statement, table, imported)
    return problems + [problem for problem in _unused(table) if problem.origin not in {each.origin for each in general}]


def _binding(binding: Binding, imported: bool) -> Iterator[Problem]:
    component = Component.registry.get(binding.component)
    if component is None and not imported and is_nowhere(binding.component):
        return
    if component is None:
        hint = owners(binding.field) if "." in binding.component else ""
        yield Problem(unknown_component(binding.component) + hint, binding.origin)
    elif binding.field not in component.model_fields:
        yield Problem(unknown_field(component, binding.field), binding.origin)


def _value(statement: Binding | Definition, table: Table, imported: bool) -> Iterator[Problem]:
    for value in values_in(statement.value, lambda value: isinstance(value, Reference | Macro)):
        if isinstance(value, Reference):
            if value.name not in Component.registry:
                if imported or not is_nowhere(value.name):
                    yield Problem(unknown_component(value.name, _taken(statement)), statement.origin)
            elif not value.called:
                yield Problem(f"{value} needs parentheses: {value}()", statement.origin)
        elif value.name not in table.macros:
            yield Problem(f"the macro {value} isn't defined{closest(value.name, table.macros)}", statement.origin)
        elif isinstance(statement, Definition) and statement.name in _used_by(value.name, table):
            yield Problem(f"the macro %{statement.name} stands for itself", statement.origin)


def _taken(statement: Binding | Definition) -> list[type[Component]]:
    """The kinds and components that the field of a binding takes, where there is such a field."""
    if not isinstance(statement, Binding) or statement.component not in Component.registry:
        return []
    field = Component.registry[statement.component].model_fields.get(statement.field)
    return components_in(field.annotation) if field else []


def _used_by(name: str, table: Table) -> set[str]:
    """The macro itself and every macro that its value uses, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in found and name in table.macros:
            found.add(name)
            waiting += [macro.name for macro in values_in(table.macros[name].value, lambda value: isinstance(value, Macro))]
    return found


def _unused(table: Table) -> Iterator[Problem]:
    values = [binding.value for binding in table.bindings]
    used = {name for macro in values_in(values, lambda value: isinstance(value, Macro)) for name in _used_by(macro.name, table)}
    for name, definition in table.macros.items():
        if name not in used:
            yield Problem(f"the macro {name} isn't used{owners(name)}", definition.origin)

"""Methods that a component overrides take what those of its kind take: whoever calls them knows the kind alone.

Types aren't looked at: a type checker does that, and annotations needn't be importable here. A property over a property isn't
judged either, nor what Pydantic calls, nor a callable that is no function. A decorated method takes what its decorator takes.
"""

import inspect
from collections.abc import Iterator
from functools import cached_property
from inspect import Parameter, Signature
from types import FunctionType

_METHOD = (staticmethod, classmethod)
_REST = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_ANY = "any"
"""Stands for an argument whose name nobody has to know: of a parameter that is given by place alone, or of *args and **kwargs."""
_PYDANTIC = ("field_validators", "model_validators", "field_serializers", "model_serializers")
"""Kinds of methods that it calls."""
_MANY = 99
"""Stands for however many arguments *args takes: more than any method has parameters."""


def misfit(cls: type, base: type) -> str:
    """What is wrong with a method of `cls` that overrides one of a subclass of `base`; empty where nothing is."""
    for name in vars(cls):
        above = next((each for each in cls.__mro__[1:] if issubclass(each, base) and name in vars(each)), None)
        if above is None or (due := _method(above, name)) is None or _of_pydantic(cls, name):
            continue
        if isinstance(vars(cls)[name], (property, cached_property)):
            return f"{cls.__name__} overrides {above.__name__}.{name}, which is called, with a property; make it a method"
        if (found := _method(cls, name)) is None:
            continue
        static, above_static = (isinstance(vars(each)[name], staticmethod) for each in (cls, above))
        if _shape(found) == _shape(due) and static is above_static:  # as nearly always, and quickly seen
            continue
        taken, called = inspect.signature(found, follow_wrapped=False), inspect.signature(due)
        if _awaited(found).isdisjoint(_awaited(due)) or not takes(_on_instance(taken, static), _on_instance(called, above_static)):
            return (
                f"{cls.__name__} overrides {above.__name__}.{name} and is called like it, but has {_written(found, taken)} instead "
                f"of {_written(due, called)}; give it these parameters (further ones need a default)"
            )
    return ""


def takes(found: Signature, due: Signature) -> bool:
    """Whether every call that fits `due` fits `found` too, and gives each argument to the parameter of the same name."""
    return all(_fits(found, places, keywords) for places, keywords in _calls(due))


def _calls(due: Signature) -> Iterator[tuple[list[str], list[str]]]:
    """Names that are given by place and by keyword, in calls that show together whether any call fits: with all parameters and
    with the required ones alone, by place where that can be and by keyword where that can be."""
    parameters = [each for each in due.parameters.values() if each.kind not in _REST]
    kinds = {each.kind for each in due.parameters.values()}
    for given in parameters, [each for each in parameters if each.default is Parameter.empty]:
        alone = [_ANY for each in given if each.kind is Parameter.POSITIONAL_ONLY]
        either = [each.name for each in given if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        named = [each.name for each in given if each.kind is Parameter.KEYWORD_ONLY]
        beyond = [_ANY] * _MANY if Parameter.VAR_POSITIONAL in kinds and given is parameters else []
        yield alone + either + beyond, named
        yield alone, either + named + [_ANY] * (Parameter.VAR_KEYWORD in kinds)


def _fits(found: Signature, places: list[str], keywords: list[str]) -> bool:
    try:
        bound = found.bind(*places, **{name: name for name in keywords})
    except TypeError:
        return False
    plain = {name: value for name, value in bound.arguments.items() if found.parameters[name].kind not in _REST}
    by_place = [each.name for each in found.parameters.values() if each.kind is Parameter.POSITIONAL_ONLY]
    return not set(by_place) & set(keywords) and all(value in (name, _ANY) for name, value in plain.items())


def _method(cls: type, name: str) -> FunctionType | None:
    """The function behind a method that a class has itself; None for anything else."""
    found = vars(cls)[name]
    found = found.__func__ if isinstance(found, _METHOD) else found
    return found if inspect.isfunction(found) else None


def _shape(method: FunctionType) -> tuple[object, ...]:
    """The same for methods that take the same."""
    code, flags = method.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_COROUTINE
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = len(method.__defaults__ or ()), set(method.__kwdefaults__ or ())
    return names, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & flags, defaults


def _on_instance(signature: Signature, static: bool) -> Signature:
    """What a call on an instance takes; *args may be where the instance goes."""
    parameters = list(signature.parameters.values())
    given = not static and parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL
    return signature.replace(parameters=parameters[1 if given else 0 :])


def _awaited(method: FunctionType) -> set[bool]:
    """Whether what it returns is awaited; both may be where it's decorated."""
    return {inspect.iscoroutinefunction(method), inspect.iscoroutinefunction(inspect.unwrap(method))}


def _of_pydantic(cls: type, name: str) -> bool:
    """Whether it's Pydantic that calls this method, which looks at what it takes."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    return any(name in getattr(decorators, each, ()) for each in _PYDANTIC)


def _written(method: FunctionType, signature: Signature) -> str:
    """Its name and parameters, without types."""
    bare = [each.replace(annotation=Parameter.empty) for each in signature.parameters.values()]
    mark = "async " if inspect.iscoroutinefunction(inspect.unwrap(method)) else ""
    return f"{mark}{method.__name__}{signature.replace(parameters=bare, return_annotation=Signature.empty)}"

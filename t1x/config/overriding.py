"""Methods that a component overrides take what those of its kind take: whoever calls them knows the kind alone.

Types aren't looked at: a type checker does that, and annotations needn't be importable here.
"""

import inspect
from collections.abc import Iterator
from inspect import Parameter, Signature
from types import FunctionType

_METHOD = (staticmethod, classmethod)
_REST = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_ANY = "any"
"""Stands for an argument whose name nobody has to know: of a parameter that is given by place alone, or of *args and **kwargs."""


def misfit(cls: type, base: type) -> str:
    """What is wrong with a method of `cls` that overrides one of a subclass of `base`; empty where nothing is."""
    for name in vars(cls):
        above = next((each for each in cls.__mro__[1:] if issubclass(each, base) and name in vars(each)), None)
        if above is None or (found := _method(cls, name)) is None or (due := _method(above, name)) is None:
            continue
        if _shape(found) == _shape(due) and type(vars(cls)[name]) is type(vars(above)[name]):  # as nearly always, and quickly seen
            continue
        alike = inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(due)
        if not alike or not takes(_called(cls, name), _called(above, name)):
            return (
                f"{cls.__name__} overrides {above.__name__}.{name} and is called like it, but has {_written(found)} instead of "
                f"{_written(due)}; give it these parameters (further ones need a default)"
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
        beyond = [_ANY] * 99 if Parameter.VAR_POSITIONAL in kinds and given is parameters else []
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


def _called(cls: type, name: str) -> Signature:
    """What a call on an instance takes."""
    found = vars(cls)[name]
    signature = inspect.signature(found.__func__ if isinstance(found, _METHOD) else found)
    own = [] if isinstance(found, staticmethod) else list(signature.parameters)[:1]
    return signature.replace(parameters=[each for each in signature.parameters.values() if each.name not in own])


def _written(method: FunctionType) -> str:
    """Its name and parameters, without types."""
    signature = inspect.signature(method)
    bare = [each.replace(annotation=Parameter.empty) for each in signature.parameters.values()]
    mark = "async " if inspect.iscoroutinefunction(method) else ""
    return f"{mark}{method.__name__}{signature.replace(parameters=bare, return_annotation=Signature.empty)}"

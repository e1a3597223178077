"""Finds the components that installed packages and a user's modules declare."""

import importlib
from functools import cache
from importlib.metadata import entry_points

GROUP = "t1x.components"
"""Entry point group: each entry names a module whose import registers components."""


@cache
def discover() -> None:
    """Imports the modules of every entry point of `GROUP`, once a process. Raises `ValueError` naming a third-party package that
    can't be imported."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            if point.value.startswith("t1x."):
                raise
            package = point.dist.name if point.dist else point.name
            message = f"the components of the package {package} ({point.value}) can't be imported: {type(error).__name__}: {error}"
            raise ValueError(f"{message}; repair or uninstall it") from error


def import_components(module: str) -> None:
    """Imports a module that declares components. Raises `ValueError` for one that can't be imported."""
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's module raises is that module's fault
        message = f"import {module} fails: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            message += "; install it or put its folder on PYTHONPATH"
        raise ValueError(message) from error

"""Finds the components that installed packages declare."""

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

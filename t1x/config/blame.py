"""Whose code an exception comes from: t1x's, or a component's that the user wrote."""

import sysconfig
import traceback
from pathlib import Path

from t1x.config.component import Component

_STANDARD = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_INSTALLED = {"site-packages", "dist-packages"}


def users_place(error: BaseException) -> str | None:
    """`Class.method (file:line)` where code of the user's failed; None where it was t1x's. The innermost frame decides that isn't a
    library's; a package that declares components is no library."""
    components = {component.__module__.partition(".")[0] for component in Component.registry.values()}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        package, file = frame.f_globals.get("__name__", "").partition(".")[0], frame.f_code.co_filename
        if package == "t1x":
            return None
        if not file.startswith("<") and (package in components or not _is_library(Path(file))):
            return f"{frame.f_code.co_qualname.partition('.<locals>')[0]} ({_short(Path(file))}:{line})"
    return None


def _is_library(file: Path) -> bool:
    return not _INSTALLED.isdisjoint(file.parts) or any(file.is_relative_to(folder) for folder in _STANDARD)


def _short(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file

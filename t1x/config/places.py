"""Where a file that an experiment names is looked up: beside the file that names it, in the user's project, in the package."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def package_folder() -> Path:
    """The folder that holds `experiments/` and `registry/`: the package itself where it was installed from a wheel, the folder
    beside it in a checkout."""
    return _PACKAGE if (_PACKAGE / "experiments").is_dir() else _PACKAGE.parent


def find(name: str, beside: Path | None = None) -> Path | None:
    """The first file called `name` (a path, relative or absolute) in `beside`, the working directory and the package, or None."""
    return next((path for folder in folders(beside) if (path := folder / name).is_file()), None)


def in_project(path: Path) -> str | None:
    """A file's path below the user's project or the package, `registry/pools/t1_15k.gin`, whichever way it was named; None for one
    that lies elsewhere."""
    absolute = Path(os.path.abspath(path))  # not resolved: what a link in the registry is called counts
    folder = next((folder for folder in folders(None) if absolute.is_relative_to(folder)), None)
    return str(absolute.relative_to(folder)) if folder else None


def siblings(name: str) -> list[str]:
    """Names of the `.gin` files that `find` would have found in the same folder."""
    parent = Path(name).parent
    return sorted({str(parent / file.name) for folder in folders(None) for file in (folder / parent).glob("*.gin")})


def folders(beside: Path | None) -> list[Path]:
    """Where `find` looks, in order."""
    return [*([beside] if beside else []), Path.cwd(), package_folder()]


def shown(path: Path) -> str:
    """The path as a user would write it: relative to the working directory where it lies in it."""
    path = path.resolve()
    here = Path.cwd().resolve()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

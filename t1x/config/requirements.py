"""What an experiment needs and this machine lacks, found out without importing anything heavy.

`package`, `gpus` and so on each give the lines of `Component.missing`: none, or one.
"""

import importlib.metadata
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t1x.config.component import Component
from t1x.config.root import Root
from t1x.config.walk import walk


def package(name: str, versions: str = "") -> list[str]:
    """A distribution of this environment; `versions` as pip writes them (`>=2.55,<3`)."""
    from packaging.specifiers import SpecifierSet

    wanted = f"'{name}{versions}'" if versions else name
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return [f"package {name} (pip install {wanted})"]
    if SpecifierSet(versions).contains(found, prereleases=True):
        return []
    return [f"package {name}{versions}, {found} is here (pip install {wanted})"]


def gpus(count: int) -> list[str]:
    """So many NVIDIA devices that this process may use."""
    here = gpus_here()
    return [f"{count} GPU{'s' if count != 1 else ''}, {here} {'is' if here == 1 else 'are'} here"] if here < count else []


def variable(name: str, why: str) -> list[str]:
    """An environment variable that isn't empty."""
    return [] if os.environ.get(name) else [f"environment variable {name} ({why})"]


def folder(path: Path, why: str) -> list[str]:
    """A folder that exists."""
    return [] if path.is_dir() else [f"folder {path} ({why})"]


def program(name: str, install: str) -> list[str]:
    """An executable, by its path or on PATH."""
    return [] if shutil.which(name) else [f"program {name} ({install})"]


def worker(component: Component) -> list[str]:
    """The part that does the component's work, which this version of t1x doesn't have."""
    return [f"worker of {type(component).__name__}: not built yet"]


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that isn't here."""

    line: str
    """What it is and how to come by it."""
    needed_by: tuple[tuple[str, str], ...]
    """(path, component) of everything that needs it, in the order of the tree."""


class NotHere(Exception):
    """An experiment that can't run on this machine, with all that it lacks."""

    def __init__(self, lacks: list[Lack], site: str | None = None) -> None:
        """`site` is the one that the experiment was resolved for."""
        assert lacks, "nothing is missing"
        self.lacks = lacks
        self.site = site
        super().__init__(lacks, site)

    def __str__(self) -> str:
        count = len(self.lacks)
        heading = (
            f"{count} thing{'s' if count != 1 else ''} that this experiment needs {'are' if count != 1 else 'is'} missing here"
        )
        hint = [] if self.site == "laptop" else ["`--site laptop` runs the same experiment small"]
        return "\n".join([heading, *_grouped(self.lacks), *hint])


def missing(root: Component) -> list[Lack]:
    """What the components of a tree lack here, each thing once, in the order of the tree."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path, component in walk(root, type(root).__name__):
        for line in component.missing():
            found.setdefault(line, []).append((path, type(component).__name__))
    return [Lack(line, tuple(needed_by)) for line, needed_by in found.items()]


def require(root: Root) -> None:
    """Raises `NotHere` where anything is missing."""
    if lacks := missing(root):
        raise NotHere(lacks, root.site)


def _grouped(lacks: list[Lack]) -> Iterator[str]:
    """The lines under the first component that needs each, with the paths of the others."""
    groups: dict[tuple[str, str], list[Lack]] = {}
    for lack in lacks:
        groups.setdefault(lack.needed_by[0], []).append(lack)
    for (path, component), members in groups.items():
        yield f"  {path}: {component}"
        for lack in members:
            also = [path for path, _ in lack.needed_by[1:]]
            yield f"    {lack.line}" + (f", also for {', '.join(also)}" if also else "")


def gpus_here() -> int:
    """NVIDIA devices of this machine that this process may use."""
    present = sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in os.listdir("/dev"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not present:
        return present
    listed = [name.strip() for name in visible.split(",")]
    return len(listed[: listed.index("-1")] if "-1" in listed else [name for name in listed if name])

"""Sites: where an experiment runs.

A site is a folder `registry/sites/<name>/` in the user's project or in the package. Its `site.gin` is an overlay that is read after
the experiment; its other files shadow registry paths: `registry/sites/laptop/pools/t1_15k.gin` is read where
`registry/pools/t1_15k.gin` is included. A site whose overlay includes another's builds on it: its own files shadow first.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from t1x.config.names import closest
from t1x.config.places import find, folders
from t1x.config.problem import Origin
from t1x.config.requirements import gpus_here
from t1x.config.statement import Include, parse

SITES = "registry/sites"
OVERLAY = "site.gin"
AUTO = "auto"
"""Stands for the site that `default_site` chooses."""


@dataclass(frozen=True, slots=True)
class Site:
    """A site that was found."""

    name: str
    overlay: Path
    folders: tuple[Path, ...]
    """Its own, then those of the sites that it builds on."""

    def holds(self, path: Path) -> bool:
        """Whether a file belongs to it."""
        path = path.resolve()
        return any(path.is_relative_to(folder) for folder in self.folders)

    def shadows(self, name: str) -> list[Path]:
        """Its files that are read in place of the registry file `name`, the first first."""
        parts = PurePosixPath(name).parts
        if parts[:1] != ("registry",) or len(parts) < 2:
            return []
        below = PurePosixPath(*parts[1:])
        return [path for folder in self.folders if (path := folder / below).is_file()]


def sites() -> list[str]:
    """Names of all sites that can be found, sorted."""
    return sorted({overlay.parent.name for folder in folders(None) for overlay in (folder / SITES).glob(f"*/{OVERLAY}")})


def find_site(name: str) -> Site:
    """Raises `ValueError` naming those that there are."""
    overlay = find(f"{SITES}/{name}/{OVERLAY}")
    known = sites()
    if overlay is None or name not in known:
        hint = closest(name, known) or f"; there are {', '.join(known)}"
        raise ValueError(f"there is no site {name!r}{hint}. A site is a folder {SITES}/<name> with a file {OVERLAY}")
    return Site(name, overlay, tuple(_chain(overlay.resolve(), ())))


def default_site() -> str:
    """`cluster` where there is a GPU, else `laptop`."""
    return "cluster" if gpus_here() else "laptop"


def _chain(overlay: Path, seen: tuple[Path, ...]) -> list[Path]:
    """The folder of an overlay and of those that it includes, in order. Circles are the reader's to report."""
    if overlay in seen:
        return []
    chain = [overlay.parent]
    statements, _ = parse(overlay.read_text(encoding="utf-8-sig"), lambda line: Origin(str(overlay), line))
    for statement in statements:
        if isinstance(statement, Include) and PurePosixPath(statement.file).name == OVERLAY:
            base = find(statement.file, beside=overlay.parent)
            if base is not None:
                chain += [folder for folder in _chain(base.resolve(), (*seen, overlay)) if folder not in chain]
    return chain

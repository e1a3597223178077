"""What a site may not do: change what is studied."""

from collections.abc import Collection, Iterator

from t1x.config.component import Role
from t1x.config.digest import leaves
from t1x.config.problem import Origin, Origins, Problem
from t1x.config.root import Root
from t1x.config.statement import Binding, Definition

Statements = Collection[Binding | Definition]


def studied(root: object, origins: Origins, plain: object, plain_origins: Origins, of_site: Statements) -> Iterator[Problem]:
    """Fields of effective role `ALGORITHM` or `SEED` that a site sets, or that are other than what the file makes without it
    (`plain`, where that could be built), because one of the site's files takes the place of one that sets them."""
    if not isinstance(root, Root):
        return
    places = {statement.origin for statement in of_site}
    now = {path: value for path, value, _, role in leaves(root) if role in (Role.ALGORITHM, Role.SEED)}
    before = {path: value for path, value, *_ in leaves(plain)} if isinstance(plain, Root) else now
    told: set[Origin | None] = set()
    for path, value in now.items():
        place = _origin(origins, path)
        if place in places and place not in told:
            told.add(place)
            yield Problem(f"{path} is no size and no place, and a site may set nothing else; set it in the experiment", place)
        elif path in before and before[path] != value and place not in places:
            was = _origin(plain_origins, path)
            yield Problem(
                f"the site changes {path} from {before[path]!r} to {value!r}; its shadow of this file must include it", was
            )


def _origin(origins: Origins, path: str) -> Origin | None:
    """Where a field was set; an item of a list or a dict was set where its field was."""
    while path not in origins and path.endswith("]"):
        path = path[: path.rindex("[")]
    return origins.get(path)


def overridden(origins: Origins, plain_origins: Origins, of_site: Statements, file: str) -> list[str]:
    """A note for each field that the experiment's own file sets and its site sets again."""
    places = {statement.origin for statement in of_site}
    return [
        f"{was} sets {path}, and so does the site at {origins[path]}, which wins; --set wins over both"
        for path, was in plain_origins.items()
        if was is not None and was.file == file and origins.get(path) in places
    ]

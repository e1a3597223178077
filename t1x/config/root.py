"""What a Gin file builds."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from t1x.config.component import Component, Role
from t1x.config.problem import Origins


class Root(Component):
    """The top of a tree: what a Gin file describes and the command line runs."""

    shared: ClassVar[bool] = True
    """Set by a class that no file describes itself: its fields are shared by the roots derived from it."""

    site: Annotated[str | None, Role.PLACEMENT] = None
    """The site that the tree was resolved for. Set by loading; a file that sets it is resolved already and takes no site."""

    def run(self, file: Path | None = None, origins: Origins | None = None) -> Any:
        """Does what the tree describes and returns what came of it; `file` and `origins` are where it was loaded from. Its worker
        is imported here. Raises `ValueError` for a root that describes nothing that runs."""
        raise ValueError(f"a {type(self).__name__} describes nothing that runs")

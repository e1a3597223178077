"""What a Gin file builds."""

from typing import Annotated

from t1x.config.component import Component, Role


class Root(Component):
    """The top of a tree: what a Gin file describes and the command line runs."""

    site: Annotated[str | None, Role.PLACEMENT] = None
    """The site that the tree was resolved for. Set by loading; a file that sets it is resolved already and takes no site."""

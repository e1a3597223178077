"""What a Gin file builds."""

from t1x.config.component import Component


class Root(Component):
    """The top of a tree: what a Gin file describes and the command line runs."""

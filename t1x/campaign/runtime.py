"""Which processes the parts of an experiment live in."""

from t1x.config import Component


class Runtime(Component):
    """Which processes the parts of an experiment live in."""


class InlineRuntime(Runtime):
    """Everything in this process; sandboxes are processes of their own."""

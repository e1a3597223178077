"""The typed tree of components, and how a Gin file becomes one. Imports no other room and nothing heavy."""

from t1x.config.component import Component, Role

__all__ = ["Component", "Role"]

"""The typed tree of components, and how a Gin file becomes one. Imports no other room and nothing heavy."""

from t1x.config.component import Component, Role, Smoke
from t1x.config.discover import discover
from t1x.config.dump import dump
from t1x.config.load import Resolved, load
from t1x.config.problem import ConfigError, Origin, Origins, Problem
from t1x.config.reader import Setting
from t1x.config.root import Root

__all__ = [
    "Component",
    "ConfigError",
    "Origin",
    "Origins",
    "Problem",
    "Resolved",
    "Role",
    "Root",
    "Setting",
    "Smoke",
    "discover",
    "dump",
    "load",
]

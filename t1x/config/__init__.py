"""The typed tree of components, and how a Gin file becomes one. Imports no other room and nothing heavy.

Still to come, each a module of its own here: sites, grids, digests, and the difference between two trees.
"""

from t1x.config.component import Component, Role, Smoke
from t1x.config.discover import discover
from t1x.config.dump import dump
from t1x.config.load import Resolved, load
from t1x.config.problem import ConfigError, Origin, Problem
from t1x.config.root import Root

__all__ = ["Component", "ConfigError", "Origin", "Problem", "Resolved", "Role", "Root", "Smoke", "discover", "dump", "load"]

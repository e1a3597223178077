"""t1x: declarative experiments for reinforcement learning of terminal agents.

`load` resolves an experiment, `run` runs it, `evaluate` evaluates what it trained, `runs` lists what was run. Importing
this imports no room.
"""

from t1x.api import evaluate, load, run, runs

__version__ = "0.1.0"

__all__ = ["__version__", "evaluate", "load", "run", "runs"]

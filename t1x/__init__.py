"""t1x: declarative experiments for reinforcement learning of terminal agents."""

__version__ = "0.1.0"

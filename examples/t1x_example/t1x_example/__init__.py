"""A reward and a pool of tasks for t1x. Importing it registers both: t1x does so by its entry point."""

from t1x_example.pool import SumPool
from t1x_example.reward import Tolerant

__all__ = ["SumPool", "Tolerant"]

"""Training on demonstrations before reinforcement learning."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from t1x.config import Component, Role, Smoke
from t1x.training.optimizer import Optimizer
from t1x.trajectory.records import Trajectory

if TYPE_CHECKING:
    from t1x.model.transformer import MoeTransformer


class FineTuning(Component):
    """How a policy learns from demonstrations."""

    steps: Annotated[int, Field(ge=1), Role.SCALE, Smoke(2)] = 600
    """Optimizer steps."""

    def fit(
        self,
        model: "MoeTransformer",
        trajectories: Sequence[Trajectory],
        on_step: Callable[[int, float], None] = lambda step, loss: None,
    ) -> list[float]:
        """Trains the model in place and returns the loss (nats a token) of each step; `on_step(step, loss)` after each."""
        raise NotImplementedError


class Supervised(FineTuning):
    """Cross-entropy on the tokens that carry loss, batches of like length in random order."""

    optimizer: Optimizer
    """Its schedule runs over `steps`."""
    batch: Annotated[int, Field(ge=1), Role.SCALE, Smoke(4)] = 32
    """Demonstrations an optimizer step."""
    balance: Annotated[float, Field(ge=0)] = 0.01
    """Coefficient of the load-balancing loss (Switch Transformers, Eq. 4), averaged over layers; keeps experts alive from
    scratch."""
    seed: int = 0
    """Of the order of the demonstrations."""

    def fit(
        self,
        model: "MoeTransformer",
        trajectories: Sequence[Trajectory],
        on_step: Callable[[int, float], None] = lambda step, loss: None,
    ) -> list[float]:
        from t1x.training.supervised import fit

        return fit(model, trajectories, self, on_step)

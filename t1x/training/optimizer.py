"""Optimizers and their schedules, counted in optimizer steps."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from t1x.config import Component, Role

if TYPE_CHECKING:
    import torch

    from t1x.training.torch_optimizer import TorchOptimizer


class Optimizer(Component):
    """How gradients change weights."""

    def build(self, parameters: "Iterable[torch.nn.Parameter]", total_steps: int | None = None) -> "TorchOptimizer":
        """The living optimizer of these parameters. `total_steps` is the run's length in optimizer steps, where it is known."""
        raise NotImplementedError


class Adam(Optimizer):
    """Adam with decoupled weight decay on matrices (not on norms and biases), gradients clipped by their global norm."""

    lr: Annotated[float, Field(gt=0), Role.SCALE]
    """Canonical learning rate (report: 5e-7 for actor and critic, Table 3)."""
    multiple: Annotated[float, Field(gt=0), Role.SCALE] = 1.0
    """Times `lr` is the peak learning rate (report: 2 for the actor, 30 for the critic, Table 3)."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.98)
    """Decay of the first and second moments (report)."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Added to the root of the second moment (Adam's paper)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    """Per step, times the learning rate (report)."""
    clip_norm: Annotated[float, Field(gt=0)] = 1.0
    """Largest global gradient norm; larger gradients are scaled down to it (Megatron's default)."""
    warmup_steps: Annotated[int, Field(ge=0), Role.SCALE] = 0
    """Optimizer steps over which the learning rate rises linearly to its peak (report: constant)."""
    decay_to: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the peak that is left at the run's end; 1 is constant (report). Others need a run of known length."""
    decay: Literal["linear", "cosine"] = "linear"
    """How `decay_to` is reached: along a line, or half a period of a cosine (Loshchilov & Hutter, arXiv 1608.03983)."""
    skip_limit: Annotated[int, Field(ge=1)] = 10
    """Steps in a row without finite gradients after which training stops; fewer are skipped and counted."""

    def lr_at(self, step: int, total_steps: int | None = None) -> float:
        """The learning rate of optimizer step `step`, the first being 0. It warms up and decays at once: each is a factor."""
        warm = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        passed = min(1.0, step / total_steps) if total_steps else 0.0
        if self.decay == "cosine":
            passed = (1 - math.cos(math.pi * passed)) / 2
        return self.lr * self.multiple * warm * (1 - (1 - self.decay_to) * passed)

    def build(self, parameters: "Iterable[torch.nn.Parameter]", total_steps: int | None = None) -> "TorchOptimizer":
        if self.decay_to != 1 and total_steps is None:
            raise ValueError(f"Adam.decay_to = {self.decay_to} needs a run of known length; set it to 1 here")
        from t1x.training.torch_optimizer import TorchOptimizer

        return TorchOptimizer(self, parameters, total_steps)

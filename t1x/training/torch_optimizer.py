"""A living Adam.

Invariant: a step whose gradients are not finite changes nothing but the counts of skipped steps.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch

from t1x.parallel.sharded import sharded_state, whole, whole_copy
from t1x.training.optimizer import Adam


class TorchOptimizer:
    """Fused AdamW with clipping by global norm and the spec's schedule."""

    def __init__(self, spec: Adam, parameters: Iterable[torch.nn.Parameter], total_steps: int | None) -> None:
        self.spec = spec
        self.total_steps = total_steps
        self.steps = 0
        """Steps taken; skipped ones don't count."""
        self.skipped = 0
        """Steps without finite gradients, in all."""
        self.skipped_in_a_row = 0
        """Those since the last step that was taken."""
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        matrices = [parameter for parameter in self._parameters if parameter.ndim > 1]
        vectors = [parameter for parameter in self._parameters if parameter.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": spec.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self._adam = torch.optim.AdamW(
            [group for group in groups if group["params"]], lr=self.lr, betas=spec.betas, eps=spec.eps, fused=True
        )

    def step(self) -> float:
        """Takes one step with the gradients that were accumulated and clears them; returns their norm before clipping. Where it is
        not finite the step is skipped. Raises `ValueError` where that was `skip_limit` times in a row."""
        norm = float(whole(torch.nn.utils.clip_grad_norm_(self._parameters, self.spec.clip_norm)))
        if math.isfinite(norm):
            for group in self._adam.param_groups:
                group["lr"] = self.lr
            self._adam.step()
            self.steps += 1
            self.skipped_in_a_row = 0
        else:
            self.skipped += 1
            self.skipped_in_a_row += 1
        self._adam.zero_grad(set_to_none=True)
        if self.skipped_in_a_row >= self.spec.skip_limit:
            raise ValueError(
                f"the gradients of {self.skipped_in_a_row} optimizer steps in a row weren't finite, after {self.steps} that were; "
                f"look at grad_norm, loss and ratio_max of the steps before, and lower lr or raise warmup_steps (Adam.skip_limit "
                f"is {self.spec.skip_limit})"
            )
        return norm

    @property
    def lr(self) -> float:
        """Learning rate of the next step."""
        return self.spec.lr_at(self.steps, self.total_steps)

    def state_dict(self) -> dict[str, Any]:
        return {
            "adam": whole_copy(self._adam.state_dict()),
            "steps": self.steps,
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        parameters = [parameter for group in self._adam.param_groups for parameter in group["params"]]
        self._adam.load_state_dict(sharded_state(state["adam"], parameters))
        self.steps, self.skipped, self.skipped_in_a_row = state["steps"], state["skipped"], state["skipped_in_a_row"]

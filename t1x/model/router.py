"""Where the experts of a forward pass come from (rollout routing replay, report section 4.3)."""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from t1x.config import Component


class RouterMode(StrEnum):
    """How a MoE layer chooses its experts in one pass. In a replay the selection (and its slot order) comes from the record, all
    else from the live logits (Eq. 12), so gradients reach the router."""

    FREE = "free"
    """The router's own top-k."""
    REPLAY_NO_GRAD = "replay_no_grad"
    REPLAY_WITH_GRAD = "replay_with_grad"


class Router(Component):
    """How the actor's passes choose experts; critic and reference passes are always free."""

    behaviour: RouterMode = RouterMode.FREE
    """Pass that recomputes the sampling policy's log-probabilities (the PPO denominator)."""
    update: RouterMode = RouterMode.FREE
    """Forward pass of the actor's update and its recomputation."""

    @model_validator(mode="after")
    def _both_replay_or_none(self) -> Self:
        if (self.behaviour is RouterMode.FREE) is not (self.update is RouterMode.FREE):
            raise ValueError(
                f"behaviour = {self.behaviour.value!r} and update = {self.update.value!r}: numerator and denominator of the ratio "
                f"must go through the same experts; let both replay or none"
            )
        if self.update is RouterMode.REPLAY_NO_GRAD:
            raise ValueError("update = 'replay_no_grad' has no gradient; use 'replay_with_grad'")
        return self


class FreeRouting(Router):
    """No replay: every pass routes by its own logits."""


class ReplayRouting(Router):
    """R3: both passes of the actor replay the experts that the sampler used."""

    behaviour: RouterMode = RouterMode.REPLAY_NO_GRAD
    update: RouterMode = RouterMode.REPLAY_WITH_GRAD

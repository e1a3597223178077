"""Where the experts of a forward pass come from (rollout routing replay, report section 4.3)."""

from enum import StrEnum

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


class FreeRouting(Router):
    """No replay: every pass routes by its own logits."""


class ReplayRouting(Router):
    """R3: both passes of the actor replay the experts that the sampler used."""

    behaviour: RouterMode = RouterMode.REPLAY_NO_GRAD
    update: RouterMode = RouterMode.REPLAY_WITH_GRAD

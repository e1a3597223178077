"""The rules of `Guards`: pure functions of one metric's values, oldest first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NEGLIGIBLE_GAP = 1e-3
"""Nats a token: a tenth of what the report has with routing replay; what is below may grow by rounding alone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one metric is watched for."""

    metric: str
    says: Callable[[Sequence[float], float, int], str | None]
    """Of all values so far, the rule's limit and the window: what is to be said while they break the rule, or None."""
    counts: str = ""
    """What the names of metrics begin with that count the causes, of which those of the last value are told too; empty for none."""


def _recent(values: Sequence[float], window: int) -> float:
    return float(np.mean(values[-window:]))


def _early(values: Sequence[float], window: int) -> float | None:
    """Mean of the first values; None while the last ones overlap with them."""
    return float(np.mean(values[:window])) if len(values) >= 2 * window else None


def _reward_collapse(rewards: Sequence[float], share: float, window: int) -> str | None:
    if len(rewards) < 2 * window:
        return None
    best = float(np.convolve(rewards, np.ones(window) / window, mode="valid").max())
    recent = _recent(rewards, window)
    if best <= 0 or recent >= share * best:
        return None
    return (
        f"the mean reward fell to {recent:.3g}, from {best:.3g} at its best (means of {window} steps). Look at actor/kl, "
        f"actor/clip_fraction, actor/entropy and rollout/ended_by/*, and at transcripts; a lower learning rate is tried first"
    )


def _entropy_collapse(entropies: Sequence[float], share: float, window: int) -> str | None:
    early, recent = _early(entropies, window), _recent(entropies, window)
    if early is None or recent >= share * early:
        return None
    return (
        f"the policy's entropy fell to {recent:.3g} nats a token, from {early:.3g} in the first {window} steps: it hardly "
        f"explores. Look at rollout/reward_mean and eval/*/repeated_turns; lower the actor's learning rate, or raise "
        f"Campaign.temperature"
    )


def _entropy_explosion(entropies: Sequence[float], factor: float, window: int) -> str | None:
    early, recent = _early(entropies, window), _recent(entropies, window)
    if early is None or recent <= factor * early:
        return None
    return (
        f"the policy's entropy rose to {recent:.3g} nats a token, from {early:.3g} in the first {window} steps: it is losing "
        f"what it knew. Look at actor/grad_norm, actor/kl and mismatch/engine_gap; lower the actor's learning rate"
    )


def _clip_fraction(fractions: Sequence[float], limit: float, window: int) -> str | None:
    recent = _recent(fractions, window)
    if len(fractions) < window or recent <= limit:
        return None
    return (
        f"{recent:.0%} of tokens are outside the clip range (mean of {window} steps), where the loss is mostly flat. Look at "
        f"actor/kl and mismatch/version_skew; take fewer optimizer steps a batch (epochs, minibatches), a lower learning rate or "
        f"fresher batches"
    )


def _ratio(quantiles: Sequence[float], limit: float, window: int) -> str | None:
    recent = _recent(quantiles, window)
    if len(quantiles) < window or recent <= limit:
        return None
    return (
        f"one token in a hundred has an importance ratio of {recent:.3g} or more (mean of {window} steps). Look at "
        f"mismatch/engine_gap (sampler against trainer) and mismatch/version_skew (old batches); with experts, use @ReplayRouting()"
    )


def _gap_growth(gaps: Sequence[float], factor: float, window: int) -> str | None:
    early, recent = _early(gaps, window), _recent(gaps, window)
    if early is None or recent <= max(factor * early, NEGLIGIBLE_GAP):
        return None
    return (
        f"sampler and trainer differ by {recent:.3g} nats a token, {early:.3g} in the first {window} steps. Look at "
        f"fidelity/recomputed_differences and actor/ratio_*; with experts use @ReplayRouting(), and one precision for both"
    )


def _turn_growth(turns: Sequence[float], factor: float, window: int) -> str | None:
    early, recent = _early(turns, window), _recent(turns, window)
    if early is None or recent <= factor * early:
        return None
    return (
        f"trials take {recent:.3g} turns, {early:.3g} in the first {window} steps. Look at rollout/ended_by/turn_limit and "
        f"context, eval/*/turns_failed and repeated_turns, and at transcripts: it may have stopped ending its trials"
    )


def _explained_variance(explained: Sequence[float], steps: float, window: int) -> str | None:
    last = explained[-int(steps) :]
    if len(last) < steps or max(last) >= 0:
        return None
    return (
        f"the critic's explained variance was negative in {len(last)} steps in a row ({last[-1]:.3g} now): it does worse than a "
        f"constant. Look at critic/loss, critic/value_mean and critic/return_mean; warm it up (Campaign.critic_warmup, "
        f"Campaign.critic_start) or change its learning rate"
    )


def _fallback_share(shares: Sequence[float], limit: float, window: int) -> str | None:
    last = shares[-1]
    if last <= limit:
        return None
    return (
        f"{last:.0%} of the trials of a batch were paid without a usable record, by their outcome alone. Look at transcripts, at "
        f"rollout/unusable/*, and run `t1x tasks check` on the pool: its verifiers leave no record, or agents break it"
    )


RULES = {
    "reward_collapse": Rule("rollout/reward_mean", _reward_collapse),
    "entropy_collapse": Rule("actor/entropy", _entropy_collapse),
    "entropy_explosion": Rule("actor/entropy", _entropy_explosion),
    "clip_fraction": Rule("actor/clip_fraction", _clip_fraction),
    "ratio": Rule("actor/ratio_p99", _ratio),
    "gap_growth": Rule("mismatch/engine_gap", _gap_growth),
    "turn_growth": Rule("rollout/turns_mean", _turn_growth),
    "explained_variance": Rule("critic/explained_variance", _explained_variance),
    "fallback_share": Rule("rollout/fallback_share", _fallback_share, counts="rollout/unusable/"),
}
"""By the field of `Guards` that sets the limit."""

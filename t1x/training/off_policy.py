"""What an algorithm does about tokens that other weights or another engine sampled.

q are the sampler's log-probabilities, o those of the denominator of the policy's ratio, c the current ones.
"""

from typing import Literal

import numpy as np

from t1x.training.algorithm import TokenVector
from t1x.training.batch import Batch
from t1x.training.correction import Correction
from t1x.training.objective import Objective

MixedVersions = Literal["refuse", "per_span", "decoupled"]
"""`refuse`: a batch is of one policy version; o is that version's. `per_span`: o of each token is that of the version that sampled
it, retained till then. `decoupled`: o is the current weights' before the update, whichever version sampled, and the advantages
are weighted by exp(o - q) (decoupled PPO: Hilton et al., arXiv 2110.00641; AReaL, arXiv 2505.24298)."""


def check_versions(batch: Batch, mixed: MixedVersions) -> None:
    """Raises `ValueError` for a batch of several versions where these are refused."""
    versions = np.unique(batch.versions).tolist()
    if mixed == "refuse" and len(versions) > 1:
        raise ValueError(
            f"the batch was sampled by the policy versions {versions}, but the algorithm's mixed_versions refuses more than one; "
            f"set it to 'per_span' or 'decoupled'"
        )


def objection(objective: Objective, correction: Correction | None, mixed: MixedVersions) -> str:
    """Why these don't go together and what to set; empty where they do."""
    field, default = ("correction", "None") if correction is not None else ("mixed_versions", "'per_span'")
    if correction is not None and mixed == "decoupled":
        return (
            f"correction {type(correction).__name__} and mixed_versions = 'decoupled' both weight tokens by exp(o - q); set one of "
            f"them to its default"
        )
    if correction is None and mixed != "decoupled":
        return ""
    if objective.one_advantage:
        name = type(objective).__name__
        return f"{field} weights single tokens, but objective {name} has one ratio a sample; set {field} to {default}"
    if not objective.off_policy:
        return (
            f"{field} needs the behaviour's log-probabilities, which objective {type(objective).__name__} doesn't ask for; set "
            f"{field} to {default}"
        )
    return ""


def reweighted(
    advantages: TokenVector, behaviour: TokenVector, batch: Batch, correction: Correction | None, mixed: MixedVersions
) -> tuple[TokenVector, dict[str, float]]:
    """The advantages [M] times each token's weight for the gap between q, the batch's, and o = `behaviour` [M]. Metrics:
    `actor/correction_weight_mean` and, with a correction, the share of tokens that it limits."""
    if correction is None and mixed != "decoupled":
        return advantages, {}
    ratio = np.exp(np.asarray(behaviour, dtype=np.float64) - batch.sampler_logprobs)
    weights = ratio if correction is None else correction.weights(ratio)
    metrics = {"actor/correction_weight_mean": float(weights.mean())}
    if correction is not None:
        metrics[f"actor/correction_{correction.limit}"] = float((weights != ratio).mean())
    return advantages * weights, metrics

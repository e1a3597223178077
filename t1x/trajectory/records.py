"""What a turn captured, and the streams of one training sample.

Invariant: every stream of a trajectory has gone through the same offsets; nobody edits one stream alone.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import Experts
from t1x.text.tokenizer import RenderedPrompt


class Boundary(StrEnum):
    """How turn i+1's prompt p_{i+1} continues turn i, T_i = p_i ∥ a_i (report, Box 4.2). Weaker from case to case."""

    EXACT = "exact"
    """T_i is a prefix of it (Eq. 6)."""
    EDGE = "edge"
    """T_i is a prefix of it but for a few ids at the end of p_i, and stop and blank ids at the end of a_i (Eq. 7)."""
    RETOKENIZED = "retokenized"
    """Its text continues that of T_i in other ids (Eq. 8)."""
    RESTART = "restart"
    """History was compacted or rewritten, as the harness announced (Eq. 9): another trajectory begins."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a trial, as the engine consumed and sampled it: T_i = prompt_ids ∥ completion.ids."""

    index: int
    prompt_ids: npt.NDArray[np.int32]
    """[m]; may be a read-only view of a buffer shared with other turns."""
    completion: Completion
    temperature: float
    restarted: bool = False
    """The harness announces that the history before this turn was compacted or rewritten: a restart, unless the prompt continues
    T_i exactly."""
    rendered: RenderedPrompt | None = None
    """How a text-based harness came to `prompt_ids`; None where ids are the source of truth."""
    placeholder_tokens: int = 0
    """Ids of the prompt, behind the turn before, that the harness put where the policy would have spoken (a stop id after an answer
    that was cut off, an error's placeholder). They are context, never marked as sampled."""


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """Loss positions in [start, stop) were sampled by `version`."""

    start: int
    stop: int
    version: int


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One training sample of N tokens ("chunk"); arrays are read-only."""

    token_ids: npt.NDArray[np.int32]
    """[N]: what the sampler consumed and emitted."""
    loss_mask: npt.NDArray[np.bool_]
    """[N]: true iff the token was sampled by the policy (Eq. 5)."""
    logprobs: npt.NDArray[np.float32]
    """[N]: the sampler's log-probability where loss_mask, else exactly 0."""
    routed_experts: Experts
    """[N-1, layers, k]: row j holds the experts used at position j, that is, to predict token j+1 (Eq. 13)."""
    versions: tuple[VersionSpan, ...]
    boundaries: tuple[Boundary, ...]
    """One a turn after the first."""
    temperature: float
    substituted_rows: tuple[int, ...] = ()
    """Rows that belong to no turn's capture and repeat the row before them (Eq. 14); none predicts a loss token."""

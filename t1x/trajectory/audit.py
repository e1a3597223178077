"""The auditor: does every stream say what its turns captured? Shares no code with the stitchers, and runs on every batch.

Two measures of token-in, token-out:
- own-turn fidelity: id, log-probability, routing row and version of every loss position equal what its own turn captured (what
  Eq. 11 certifies); a violation is a bug, never a matter of degree;
- context fidelity: the share of loss positions whose prefix in the stream is what the engine consumed when it sampled them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from t1x.trajectory.records import Boundary, Trajectory, Turn


@dataclass(frozen=True)
class Audit:
    """Counts, so that `sum(audits, Audit())` is the audit of a batch."""

    loss_tokens: int = 0
    """Loss positions of the streams, and sampled tokens that are missing from them."""
    own_turn_violations: int = 0
    """Loss positions that differ from their own turn's capture, and context positions with a log-probability."""
    context_differences: int = 0
    """Loss positions with another prefix than the engine consumed."""
    recomputed_rows: int = 0
    """Routing rows that a later turn captured again (evicted caches), for positions that it didn't sample."""
    recomputed_differences: int = 0
    """Those among them that differ from the stream's row; in low precision that is legitimate."""
    boundaries: Counter[Boundary] = field(default_factory=Counter)

    def __add__(self, other: "Audit") -> "Audit":
        return Audit(
            self.loss_tokens + other.loss_tokens,
            self.own_turn_violations + other.own_turn_violations,
            self.context_differences + other.context_differences,
            self.recomputed_rows + other.recomputed_rows,
            self.recomputed_differences + other.recomputed_differences,
            self.boundaries + other.boundaries,
        )

    @property
    def own_turn_fidelity(self) -> float:
        """Share of loss tokens; 1 where there are none."""
        return 1 - self.own_turn_violations / max(1, self.loss_tokens)

    @property
    def context_fidelity(self) -> float:
        """Share of loss tokens; 1 where there are none."""
        return 1 - self.context_differences / max(1, self.loss_tokens)

    def metrics(self) -> dict[str, float]:
        """Everything above as `fidelity/*`."""
        return {
            "fidelity/own_turn": self.own_turn_fidelity,
            "fidelity/context": self.context_fidelity,
            "fidelity/own_turn_violations": float(self.own_turn_violations),
            "fidelity/recomputed_rows": float(self.recomputed_rows),
            "fidelity/recomputed_differences": float(self.recomputed_differences),
        } | {f"fidelity/boundary/{case}": float(self.boundaries[case]) for case in Boundary}


def audit(turns: Sequence[Turn], trajectories: Sequence[Trajectory]) -> Audit:
    """Audits one trial. Turns are assigned to trajectories by the boundaries alone: the first trajectory has one turn more than
    boundaries, every other as many."""
    total, first = Audit(), 0
    for index, trajectory in enumerate(trajectories):
        last = first + len(trajectory.boundaries) + (index == 0)
        total += _audit_stream(turns[first:last], trajectory)
        first = last
    missing = sum(len(turn.completion.ids) for turn in turns[first:])
    return total + Audit(loss_tokens=missing, own_turn_violations=missing)


def _audit_stream(turns: Sequence[Turn], stream: Trajectory) -> Audit:
    lengths = np.array([len(turn.completion.ids) for turn in turns], np.int64)
    positions = np.flatnonzero(stream.loss_mask)
    sampled = int(lengths.sum())
    counts = Counter(stream.boundaries)
    loose = int(np.count_nonzero(stream.logprobs[~stream.loss_mask]))
    n = len(stream.token_ids)
    if len(positions) != sampled or not n == len(stream.loss_mask) == len(stream.logprobs) == len(stream.routed_experts) + 1:
        worst = max(len(positions), sampled)
        return Audit(worst, worst, worst, boundaries=counts)

    versions = np.full(n, -1, np.int64)
    for span in stream.versions:
        versions[span.start : span.stop] = span.version
    wrong = stream.token_ids[positions] != np.concatenate([turn.completion.ids for turn in turns])
    wrong |= stream.logprobs[positions] != np.concatenate([turn.completion.logprobs for turn in turns])
    wrong |= versions[positions] != np.repeat([turn.completion.version for turn in turns], lengths)

    context = recomputed = changed = offset = seen = 0
    for turn in turns:
        own = slice(offset, offset + len(turn.completion.ids))
        offset = own.stop
        captured, begins, prompt = turn.completion.routing, turn.completion.routing_start, turn.prompt_ids
        sampling = len(prompt) - 1 - begins  # the capture's row that predicts the first sampled id
        rows = stream.routed_experts[positions[own] - 1]
        if sampling < 0 or captured[sampling:].shape != rows.shape:
            wrong[own] = True
        else:
            wrong[own] |= (captured[sampling:] != rows).any(axis=(1, 2))
        start = positions[own.start] if own.start < own.stop else len(prompt)
        if start != len(prompt) or not np.array_equal(stream.token_ids[:start], prompt):
            context += own.stop - own.start
        elif begins < seen:
            again = captured[: seen - begins] != stream.routed_experts[begins:seen]
            recomputed += len(again)
            changed += int(np.count_nonzero(again.any(axis=(1, 2))))
        seen = begins + len(captured)
    return Audit(sampled, int(np.count_nonzero(wrong)) + loose, context, recomputed, changed, counts)

"""What an audit counts."""

from collections import Counter
from dataclasses import dataclass, field, fields

from t1x.trajectory.audit_finding import Finding, worst
from t1x.trajectory.records import Boundary

SUBSTITUTED_BOUND = 3e-5
"""Share of positions that the report's substituted rows (the set P of Eq. 11) stay below (0.003 %)."""


@dataclass(frozen=True)
class Audit:
    """Counts, so that `sum(audits, Audit())` is the audit of a batch."""

    positions: int = 0
    """Tokens of the streams (N in all)."""
    loss_tokens: int = 0
    """Loss positions of the streams, and sampled tokens that are missing from them."""
    own_turn_violations: int = 0
    """Loss positions that differ from their own turn's capture, and context positions with a log-probability."""
    context_differences: int = 0
    """Loss positions with another prefix than the engine consumed."""
    retokenized: int = 0
    """Positions whose id isn't the one that the engine consumed or sampled when the turn that they came with was sampled (the set D
    of Eq. 11)."""
    placeholder_tokens: int = 0
    """Ids of prompts that the harness put where the policy would have spoken."""
    substituted_rows: int = 0
    """Routing rows that repeat the row before them, for want of a capture (Eq. 14; the set P of Eq. 11)."""
    misplaced_rows: int = 0
    """Routing rows of context positions that were captured for no such token, or substituted against Eq. 14."""
    cached_differences: int = 0
    """Routing rows served from a cache that aren't those captured before (invariant 2)."""
    wrong_labels: int = 0
    """What streams say of turns as a whole and isn't so: their temperature, their boundaries and how many these are."""
    recomputed_rows: int = 0
    """Routing rows that a later turn captured again (evicted caches), for positions that it didn't sample."""
    recomputed_differences: int = 0
    """Those among them that differ from the row captured before; in low precision that is legitimate."""
    boundaries: Counter[Boundary] = field(default_factory=Counter)
    findings: tuple[Finding, ...] = ()
    """The worst, bounded in number."""

    def __add__(self, other: "Audit") -> "Audit":
        added = {part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)}
        return Audit(**added | {"findings": worst(added["findings"])})

    @property
    def own_turn_fidelity(self) -> float:
        """Share of loss tokens; 1 where there are none."""
        return 1 - self.own_turn_violations / max(1, self.loss_tokens)

    @property
    def context_fidelity(self) -> float:
        """Share of loss tokens; 1 where there are none."""
        return 1 - self.context_differences / max(1, self.loss_tokens)

    @property
    def substituted_share(self) -> float:
        """Substituted rows as a share of all positions."""
        return self.substituted_rows / max(1, self.positions)

    @property
    def violations(self) -> int:
        """What a faithful stitcher and a sound engine leave none of."""
        return self.own_turn_violations + self.misplaced_rows + self.cached_differences + self.wrong_labels

    def metrics(self) -> dict[str, float]:
        """Everything above as `fidelity/*`."""
        counts = (
            "own_turn_violations",
            "retokenized",
            "placeholder_tokens",
            "substituted_rows",
            "misplaced_rows",
            "cached_differences",
            "wrong_labels",
            "recomputed_rows",
            "recomputed_differences",
        )
        shares = {"own_turn": self.own_turn_fidelity, "context": self.context_fidelity, "substituted_share": self.substituted_share}
        cases = {f"boundary/{case}": float(self.boundaries[case]) for case in Boundary}
        values = shares | {name: float(getattr(self, name)) for name in counts} | cases
        return {f"fidelity/{name}": value for name, value in values.items()}

"""How many sandboxes there were, and how long making and destroying them took."""

from dataclasses import dataclass, field

import numpy as np

_PERCENTILES = (50, 95)


@dataclass(slots=True, eq=False)
class LeaseCounts:
    """What became of sandboxes over some time. Seconds are in the order of events."""

    most: int
    """Sandboxes that were there or being made at a time, at most."""
    failed: int = 0
    """Creations that failed; cancelled ones didn't."""
    waited: list[float] = field(default_factory=list)
    """Seconds for a place, of each sandbox that was created."""
    paced: list[float] = field(default_factory=list)
    """Seconds for the token bucket after that."""
    created: list[float] = field(default_factory=list)
    """Seconds of the creation itself."""
    destroyed: list[float] = field(default_factory=list)
    """Seconds of each destruction."""

    def made(self, *, waited: float, paced: float, created: float) -> None:
        """One more was created."""
        self.waited.append(waited)
        self.paced.append(paced)
        self.created.append(created)

    def metrics(self) -> dict[str, float]:
        """`sandbox/created` and `sandbox/failed`; under `time/`, since they depend on the clock, `sandbox_most_at_once` and
        percentiles of the seconds: `sandbox_<wait, pace, create, destroy>_p<50, 95>`."""
        metrics = {
            "sandbox/created": float(len(self.created)),
            "sandbox/failed": float(self.failed),
            "time/sandbox_most_at_once": float(self.most),
        }
        seconds = {"wait": self.waited, "pace": self.paced, "create": self.created, "destroy": self.destroyed}
        for name, taken in seconds.items():
            if taken:
                values = np.percentile(taken, _PERCENTILES)
                metrics |= {f"time/sandbox_{name}_p{p}": float(value) for p, value in zip(_PERCENTILES, values, strict=True)}
        return metrics

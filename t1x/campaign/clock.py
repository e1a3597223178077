"""How long the phases of a step take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Wall-clock seconds by phase."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Adds what the block takes to a phase."""
        started = time.perf_counter()
        yield
        self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - started

    def metrics(self) -> dict[str, float]:
        """`time/<phase>` of what was measured."""
        return {f"time/{phase}": value for phase, value in self._seconds.items()}

    @property
    def total(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self._started

"""Which trials of a rollout make the batch.

Invariant: every launched trial comes out exactly once: admitted, cancelled or invalid.

A scheduler is a pure state machine without a clock or I/O of its own, so it runs live, in virtual time and in property tests.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from pydantic import Field

from t1x.config import Component


@dataclass(frozen=True, slots=True)
class Begin:
    """The rollout starts with these trials; as many as `Scheduler.launches` says."""

    trials: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial ended; `valid` where it completed and was verified."""

    trial: str
    valid: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A trial was cancelled, and nothing is left of it."""

    trial: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Start this trial when there is room."""

    trial: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this trial; `Cancelled` follows, or `Finished` where it was faster."""

    trial: str


@dataclass(frozen=True, slots=True)
class Close:
    """The batch is complete. `admitted` stands in the order of launching."""

    admitted: tuple[str, ...]


Event = Begin | Finished | Cancelled
Action = Launch | Cancel | Close


class SchedulerMachine(Protocol):
    """Schedules one rollout."""

    def step(self, event: Event, now: float) -> list[Action]:
        """What to do after `event`, which happened at `now` (seconds of any monotonic clock). Exactly one `Close` in all."""


class Scheduler(Component):
    """Which of the launched trials are admitted to a batch."""

    def launches(self, batch: int) -> int:
        """How many trials to launch for a batch."""
        raise NotImplementedError

    def build(self, batch: int) -> SchedulerMachine:
        """A machine for one rollout."""
        raise NotImplementedError


class WaitAll(Scheduler):
    """Launches the batch and waits for all of it."""

    def launches(self, batch: int) -> int:
        return batch

    def build(self, batch: int) -> SchedulerMachine:
        return FirstValid(batch)


class Oversample(Scheduler):
    """Launches more trials than the batch holds, admits the first to complete and verify, and cancels the rest (report, section
    7.3). What takes longest is left out most often: the bias is part of the result."""

    ratio: float = Field(default=1.09375, ge=1)
    """Launched trials a batch, as a multiple of it (report: 560 for 512)."""

    def launches(self, batch: int) -> int:
        return math.ceil(round(batch * self.ratio, 6))  # 100 × 1.1 is a little more than 110

    def build(self, batch: int) -> SchedulerMachine:
        return FirstValid(batch)


class FirstValid:
    """Admits the first `batch` valid trials, or what there is when all have come out."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._launched: tuple[str, ...] = ()
        self._alive: dict[str, None] = {}
        self._admitted: set[str] = set()
        self._closed = False

    def step(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Begin):
            assert not self._launched, "a rollout begins once"
            self._launched = event.trials
            self._alive = dict.fromkeys(event.trials)
            assert len(self._alive) == len(event.trials) > 0, "trial ids are unique"
            return [Launch(trial) for trial in event.trials]
        assert event.trial in self._alive, f"trial {event.trial} was not launched or came out before"
        del self._alive[event.trial]
        if self._closed:
            return []
        if isinstance(event, Finished) and event.valid:
            self._admitted.add(event.trial)
        if len(self._admitted) < self._batch and self._alive:
            return []
        self._closed = True
        admitted = tuple(trial for trial in self._launched if trial in self._admitted)
        return [Close(admitted), *(Cancel(trial) for trial in self._alive)]

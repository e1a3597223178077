"""Which trials of a rollout make the batch.

Invariants:
- every launched trial comes out exactly once: admitted, cancelled, invalid, or valid and left out;
- of a group, `WholeGroups` admits all trials or none;
- a deterministic machine admits the same trials in whatever order they come out, and cancels none.

A scheduler is a pure state machine without a clock or I/O of its own, so it runs live, in virtual time and in property tests.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pydantic import Field

from t1x.config import Component


@dataclass(frozen=True, slots=True)
class Begin:
    """The rollout starts with these trials; as many as `Scheduler.launches` says."""

    trials: tuple[str, ...]
    group_size: int = 1
    """Trials that follow one another form groups of this size, attempts at one task; they divide into such."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial ended; `valid` where it completed and was verified."""

    trial: str
    valid: bool
    cost: int
    """What it took in virtual time; see `virtual_cost`."""


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

    whole_groups: ClassVar[bool] = False
    """Whether it admits all trials of a group or none."""

    returns_cancelled: bool = False
    """Whether tasks of trials that were launched and not admitted go back to the pool's cursor and come first next (not stated in
    the report)."""

    def launches(self, batch: int) -> int:
        """How many trials to launch for a batch."""
        raise NotImplementedError

    def indeterminism(self) -> str:
        """Why which trials it admits may depend on how long they took, and what to set; empty where it can be built so that it
        doesn't."""
        return "which trials it admits may depend on how long they took; use @WaitAll()"

    def build(self, batch: int, deterministic: bool = False) -> SchedulerMachine:
        """A machine for one rollout; where it is `deterministic`, what it admits doesn't depend on the order in which trials come
        out."""
        raise NotImplementedError


class WaitAll(Scheduler):
    """Launches the batch and waits for all of it."""

    def launches(self, batch: int) -> int:
        return batch

    def indeterminism(self) -> str:
        return ""

    def build(self, batch: int, deterministic: bool = False) -> SchedulerMachine:
        return FirstValid(batch)


class Oversample(Scheduler):
    """Launches more trials than the batch holds, admits the first to complete and verify, and cancels the rest (report, section
    7.4). What takes longest is left out most often: the bias is part of the result. A deterministic experiment cancels none and
    admits those of least virtual cost (`t1x.rollout.cost`) instead: the same bias, without the clock."""

    ratio: float = Field(default=1.09375, ge=1)
    """Launched trials a batch, as a multiple of it (report: 560 for 512)."""

    def launches(self, batch: int) -> int:
        return math.ceil(round(batch * self.ratio, 6))  # 100 × 1.1 is a little more than 110

    def indeterminism(self) -> str:
        return ""

    def build(self, batch: int, deterministic: bool = False) -> SchedulerMachine:
        return LeastCost(batch) if deterministic else FirstValid(batch)


class WholeGroups(Scheduler):
    """Launches the batch and admits the groups whose trials are all valid, for algorithms that compare trials of one task (report,
    section 9.4). Where one fails, the others of its group are cancelled, since nothing can come of them."""

    whole_groups: ClassVar[bool] = True

    def launches(self, batch: int) -> int:
        return batch

    def indeterminism(self) -> str:
        return ""

    def build(self, batch: int, deterministic: bool = False) -> SchedulerMachine:
        return AllOrNone(cancels=not deterministic)


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


class LeastCost:
    """Waits for all trials and admits the `batch` valid ones of least cost; of equal ones, those launched first."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._launched: tuple[str, ...] = ()
        self._alive: set[str] = set()
        self._cost: dict[str, int] = {}

    def step(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Begin):
            assert not self._launched, "a rollout begins once"
            self._launched, self._alive = event.trials, set(event.trials)
            assert len(self._alive) == len(event.trials) > 0, "trial ids are unique"
            return [Launch(trial) for trial in event.trials]
        assert event.trial in self._alive, f"trial {event.trial} was not launched or came out before"
        self._alive.remove(event.trial)
        if isinstance(event, Finished) and event.valid:
            self._cost[event.trial] = event.cost
        if self._alive:
            return []
        valid = [trial for trial in self._launched if trial in self._cost]
        least = set(sorted(valid, key=self._cost.__getitem__)[: self._batch])  # the sort is stable
        return [Close(tuple(trial for trial in valid if trial in least))]


class AllOrNone:
    """Admits the groups that are valid as a whole, when every group is either that or broken; `cancels` what is left of a broken
    one."""

    def __init__(self, cancels: bool) -> None:
        self._cancels = cancels
        self._launched: tuple[str, ...] = ()
        self._alive: dict[str, None] = {}
        self._group: dict[str, int] = {}
        self._broken: set[int] = set()
        self._closed = False

    def step(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Begin):
            assert not self._launched, "a rollout begins once"
            assert len(event.trials) % event.group_size == 0, f"{len(event.trials)} trials aren't groups of {event.group_size}"
            self._launched = event.trials
            self._alive = dict.fromkeys(event.trials)
            assert len(self._alive) == len(event.trials) > 0, "trial ids are unique"
            self._group = {trial: index // event.group_size for index, trial in enumerate(event.trials)}
            return [Launch(trial) for trial in event.trials]
        assert event.trial in self._alive, f"trial {event.trial} was not launched or came out before"
        del self._alive[event.trial]
        actions: list[Action] = []
        group = self._group[event.trial]
        if group not in self._broken and not (isinstance(event, Finished) and event.valid):
            self._broken.add(group)
            if self._cancels:
                actions += [Cancel(trial) for trial in self._alive if self._group[trial] == group]
        settled = all(self._group[trial] in self._broken for trial in self._alive)
        if not self._closed and settled:
            self._closed = True
            actions.append(Close(tuple(trial for trial in self._launched if self._group[trial] not in self._broken)))
        return actions

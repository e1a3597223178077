"""What a pool has, counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from t1x.curation.candidates import candidates
from t1x.curation.journal import kept
from t1x.tasks.manifest import Entry, read_manifest
from t1x.tasks.pool import Pool
from t1x.tasks.task import Task

Number = TypeVar("Number", int, float)

PERCENT = 90
"""The percentile of assertions a task that the scale S of a dense reward lies near (report, section 5.2)."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the tasks that can be read. A measure has no value for a task that doesn't tell it."""

    tasks: int
    unreadable: int
    """Folders that aren't among them."""
    checked: int
    """Tasks that were checked as they are."""
    assertions: tuple[int, ...]
    """How many each has, as it declares or as its check found."""
    words: tuple[int, ...]
    """Of each instruction."""
    held: tuple[float, ...]
    """Share of each one's assertions that hold before anything is done."""
    seconds: Mapping[str, tuple[float, ...]]
    """By part: environment, solution, verifier."""
    families: Mapping[str, int]
    """How many tasks have a kind of work, the most frequent first; a task may have several."""
    difficulties: Mapping[str, int]
    findings: Mapping[str, int]
    """How many tasks have a fault."""

    @property
    def scale(self) -> int | None:
        """S that makes the reward of a task at the 90th percentile 1; None where no task tells its assertions."""
        return percentile(self.assertions, PERCENT) if self.assertions else None


def percentile(values: Sequence[Number], percent: int) -> Number:
    """By nearest rank: the smallest of the values that at least `percent` % of them don't exceed, so it's always one of them."""
    rank = max(1, -(-percent * len(values) // 100))
    return sorted(values)[rank - 1]


def statistics(pool: Pool, manifest: Path) -> Statistics:
    """Counts a pool, with what a manifest, or a check that hasn't ended yet, knows about its tasks. Raises `ValueError`."""
    found = candidates(pool)
    known = read_manifest(manifest)
    entries = ({} if known is None else dict(known.tasks)) | kept(manifest)
    both = [(each.task, _entry(entries.get(each.name), each.digest)) for each in found if each.task is not None]
    checked = [entry for _, entry in both if entry is not None]
    parts = {part: [getattr(entry.seconds, part) for entry in checked] for part in ("environment", "solution", "verifier")}
    return Statistics(
        tasks=len(both),
        unreadable=len(found) - len(both),
        checked=len(checked),
        assertions=tuple(count for task, entry in both if (count := _assertions(task, entry)) is not None),
        words=tuple(len(task.instruction.split()) for task, _ in both),
        held=tuple(share for task, entry in both if (share := _held(task, entry)) is not None),
        seconds={part: tuple(value for value in values if value is not None) for part, values in parts.items()},
        families=_counted(name for task, _ in both for name in set(task.families)),
        difficulties=_counted(task.difficulty for task, _ in both),
        findings=_counted(fault for entry in checked for fault in {each.fault for each in entry.findings}),
    )


def _entry(entry: Entry | None, digest: str) -> Entry | None:
    return entry if entry is not None and entry.sha256 == digest else None


def _assertions(task: Task, entry: Entry | None) -> int | None:
    return task.assertions or (len(entry.assertions) if entry is not None and entry.assertions else None)


def _held(task: Task, entry: Entry | None) -> float | None:
    baseline = entry.baseline if entry is not None and entry.baseline is not None else task.baseline
    count = _assertions(task, entry)
    return len(baseline) / count if baseline is not None and count else None


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda each: (-each[1], each[0])))

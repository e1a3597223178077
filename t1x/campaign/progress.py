"""What is going on and how long it will take: live bars in a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

QUIET = 20.0
"""Seconds without a line, where there is no terminal, after which a phase says how far it is."""
BAR = 12
NUMBERS = BAR + len(" 9999/9999 0:00:00 elapsed, 0:00:00 left  ")
"""Columns that a bar and its numbers take; title and note share the rest, so that they are what is cut."""


class Phase:
    """One piece of work of known size. `advance` is called for each part that gets done."""

    def __init__(self, report: "ProgressReport", title: str, total: int, done: int = 0) -> None:
        self._report, self._title, self._total, self._before = report, title, total, done
        self.done = done
        """Parts that are."""
        self._started = time.monotonic()
        self._bar = report.bars.add_task(cut(title, report.room), total=total, completed=done, note="") if report.live else None

    def advance(self, note: str = "") -> None:
        """One more is done; `note` is a few words on how it goes."""
        self.done += 1
        if self._bar is not None:
            self._report.bars.update(self._bar, completed=self.done, note=cut(note, self._report.room - len(self._title)))
            return
        now = time.monotonic()
        if now - max(self._started, self._report.spoke) > QUIET and self.done < self._total:
            left = (now - self._started) * (self._total - self.done) / (self.done - self._before)
            self._report.say(f"  {self._title}: {self.done}/{self._total}, {left:.0f} s left  {note}")

    def close(self) -> None:
        if self._bar is not None:
            self._report.bars.remove_task(self._bar)


class ProgressReport:
    """Phases of a run on one console. A context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = console.is_terminal
        self.spoke = -math.inf
        """When the last line was said (`time.monotonic`)."""
        self.bars = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=BAR),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left  [dim]{task.fields[note]}"),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "ProgressReport":
        if self.live:
            self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.bars.stop()

    @property
    def room(self) -> int:
        """Columns for title and note."""
        return self.console.width - NUMBERS - 1

    @contextmanager
    def phase(self, title: str, total: int, done: int = 0) -> Iterator[Phase]:
        """A phase of which `done` parts are done before; its bar goes when the block ends."""
        phase = Phase(self, title, total, done)
        try:
            yield phase
        finally:
            phase.close()

    def say(self, text: str) -> None:
        """One line that stays."""
        self.spoke = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns (none below 4)."""
    return text if len(text) <= width else f"{text[: width - 1]}…" if width >= 4 else ""

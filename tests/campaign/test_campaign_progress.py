"""What a terminal shows of a phase, narrow or wide."""

import re

import pytest
from rich.console import Console

from t1x.campaign import progress
from t1x.campaign.progress import ProgressReport


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_numbers_are_whole_at_any_width(width: int) -> None:
    console = Console(width=width, force_terminal=True, color_system=None)
    report = ProgressReport(console)
    title = "evaluating untrained on new_families, greedy"
    with report.phase(title, 400) as phase:
        phase.advance(note="reward 0.123, resolved 0.45, turns 5.6")
        with console.capture() as shown:
            console.print(report.bars.get_renderable())
    (line,) = shown.get().splitlines()
    assert re.search(r" 1/400 0:00:0\d elapsed, -:--:-- left", line), line
    assert (title in line) == (width >= 120)


def test_without_a_terminal_a_phase_speaks_only_where_nothing_else_did(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    console = Console(width=80, force_terminal=False)
    report = ProgressReport(console)
    with console.capture() as shown, report.phase("training", 9) as phase:
        for clock[0], said in ((25.0, True), (50.0, False), (60.0, False), (65.0, True), (90.0, False)):
            if said:
                report.say("a step")
            phase.advance()
    lines = [line.strip() for line in shown.get().splitlines()]
    assert lines == ["a step", "training: 2/9, 175 s left", "a step", "training: 5/9, 72 s left"]

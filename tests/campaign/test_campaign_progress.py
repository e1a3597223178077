"""What a terminal shows of a phase, narrow or wide."""

import re

import pytest
from rich.console import Console

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

"""What `t1x tasks check` prints of what it found."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from t1x.curation.meaning import MEANING, Group

SHOWN = 20
"""Tasks of one fault that are printed; the manifest has all."""
LENGTH = 500
"""Characters of one finding that are."""


def print_findings(groups: Sequence[Group], console: Console) -> None:
    """A table in a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        for line in lines(groups):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        return
    for group in groups:
        console.print(_heading(group), style="bold", highlight=False, soft_wrap=True)
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="cyan", no_wrap=True, max_width=40)
        table.add_column(overflow="fold")
        for name, detail in group.tasks[:SHOWN]:
            table.add_row(Text(name), Text(_short(detail)))
        console.print(table)
        if len(group.tasks) > SHOWN:
            console.print(f"and {len(group.tasks) - SHOWN} more", highlight=False)
        console.print()


def lines(groups: Sequence[Group]) -> Iterator[str]:
    """One a finding, under one a fault."""
    for group in groups:
        yield _heading(group)
        for name, detail in group.tasks[:SHOWN]:
            yield f"  {name}: {_short(detail)}"
        if len(group.tasks) > SHOWN:
            yield f"  and {len(group.tasks) - SHOWN} more"


def _heading(group: Group) -> str:
    return f"{group.fault} ({len(group.tasks)}): {MEANING[group.fault]}"


def _short(detail: str) -> str:
    """On one line, and the middle of a long one left out."""
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(detail.split()))
    return text if len(text) <= LENGTH else f"{text[: LENGTH // 2]} … {text[-LENGTH // 2 :]}"

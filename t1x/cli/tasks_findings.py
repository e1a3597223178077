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
LEAST = 200
"""Of these, for what a run has printed."""
PRINTED = "; it printed: "


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
    """On one line. What a long one leaves out is the middle of what was printed, and of the rest where that is too long as well."""
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(detail.split()))
    said, mark, printed = text.partition(PRINTED)
    said = _without_middle(said, LENGTH - LEAST if mark else LENGTH)
    return said + mark + _without_middle(printed, LENGTH - len(said), first=0.2)


def _without_middle(text: str, length: int, first: float = 0.5) -> str:
    """At most `length` characters of it, that share of them from its beginning, and whole words where there are such."""
    if len(text) <= length:
        return text
    head, tail = int(first * length), length - int(first * length)
    return f"{_words(text[:head], -1)} … {_words(text[-tail:], 1)}"


def _words(text: str, side: int) -> str:
    """Without the word that was cut, at the end (-1) or at the beginning (1)."""
    whole = text.rpartition(" ")[0] if side < 0 else text.partition(" ")[2]
    return whole or text

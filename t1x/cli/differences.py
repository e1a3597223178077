"""What `t1x diff` prints."""

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Any

import typer

from t1x.cli.heading import heading
from t1x.cli.value import written
from t1x.config import Component, Resolved, Role
from t1x.config.diff import Difference, Side
from t1x.config.digest import ORDER

INDENT = "  "
COLOR = {"-": "red", "+": "green"}
ABOUT = {
    Role.ALGORITHM: "what is studied",
    Role.SEED: "which random numbers",
    Role.SCALE: "sizes",
    Role.PLACEMENT: "where and with what it runs",
}


def differences(left: Resolved, right: Resolved, found: Sequence[Difference]) -> str:
    """The text, with ANSI codes: one paragraph a role, the strictest first."""
    paragraphs = [_heads(left, right, found)]
    for role in ORDER:
        same = [difference for difference in found if difference.role is role]
        if same:
            entries = "\n".join(indent("\n".join(_entry(each)), INDENT) for each in same)
            paragraphs.append(f"{typer.style(role.value, bold=True)}: {ABOUT[role]}\n{entries}")
    return "\n\n".join(paragraphs)


def _heads(left: Resolved, right: Resolved, found: Sequence[Difference]) -> str:
    a, b = dict(heading(left)), dict(heading(right))
    lines = [f"{sign} {_head(side)}" for sign, side in (("-", a), ("+", b))]
    if not found:
        return "\n".join([*lines, "the same tree"])
    counts = [(role, sum(each.role is role for each in found)) for role in ORDER]
    differ = ", ".join(f"{count} of {role.value}" for role, count in counts if count)
    verdict = "the same study" if a["study"] == b["study"] else "two studies"
    return "\n".join([*(typer.style(line, fg=COLOR[line[0]]) for line in lines), f"{verdict}; differences: {differ}"])


def _head(side: dict[str, str]) -> str:
    return f"{side['file']}  site {side['site']}  study {side['study']}  run {side['run']}"


def _entry(difference: Difference, above: str = "") -> Iterator[str]:
    """The lines of one difference: its name below the path `above` with one side, or else a head and both sides; then what differs
    inside."""
    name = difference.path.removeprefix(above).removeprefix(".") or "the root"
    sides = [(sign, side) for sign, side in (("-", difference.left), ("+", difference.right)) if side is not None]
    if len(sides) == 1:
        yield _side(*sides[0], f"{name} = ")
    else:
        yield name
        yield from (INDENT + _side(sign, side) for sign, side in sides)
    for inner in difference.inside:
        if not _is_default(inner):
            yield from (INDENT + line for line in _entry(inner, difference.path))


def _side(sign: str, side: Side, name: str = "") -> str:
    text = typer.style(f"{sign} {name}{_shown(side.value)}", fg=COLOR[sign])
    return f"{text}  {typer.style(str(side.origin or 'default'), dim=True)}"


def _shown(value: Any) -> str:
    return f"@{type(value).__name__}()" if isinstance(value, Component) else written(value)


def _is_default(difference: Difference) -> bool:
    """Whether a field that only one side has was left at its default, as was everything in it."""
    sides = [side for side in (difference.left, difference.right) if side is not None]
    return len(sides) == 1 and sides[0].origin is None and all(_is_default(inner) for inner in difference.inside)

"""A trial in the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from t1x.cli.trajectory_wording import (
    SHADES,
    context_title,
    experts_line,
    facts,
    least_likely,
    routing_line,
    sampled_title,
    shade,
    told_boundaries,
    turn_title,
)
from t1x.text.visible import legible
from t1x.trajectory.records import Boundary
from t1x.trajectory.shown import ShownTrial, ShownTurn
from t1x.trajectory.shown_tokens import Tokens
from t1x.trajectory.storage_summary import TrialSummary

STYLES = ("bold green", "bold cyan", "bold yellow", "bold magenta", "bold red")
"""By `shade`."""
FIRST_TURNS, LAST_TURNS = 6, 4
"""Turns that an excerpt shows."""
WRAPPED = {"task": 12, "ended by": 8}
"""Columns of a list that are wrapped, and how wide they stay."""
HEAD, TAIL = 160, 80
"""Ids of a prompt's new part, and of a completion, that an excerpt shows."""


def trial_text(shown: ShownTrial, batch: str, everything: bool, coloured: bool = True) -> Group:
    """All of a trial, or an excerpt whose size is bounded. What colours mean is said where there are any."""
    head = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts(shown, batch):
        head.add_row(Text(name, style="dim"), Text(legible(value)))
    parts: list[RenderableType] = [head]
    if coloured:
        parts.append(_legend())
    return Group(*parts, *_turns(shown, everything))


def _legend() -> Text:
    legend = Text("sampled tokens by probability: ", style="dim")
    edges = (f"≥ {SHADES[0]:g}", *(f"≥ {edge:g}" for edge in SHADES[1:]), f"< {SHADES[-1]:g}")
    for edge, style in zip(edges, STYLES, strict=True):
        legend.append(f"{edge}  ", style=style)
    return legend


def _turns(shown: ShownTrial, everything: bool) -> Iterator[RenderableType]:
    turns = shown.turns
    left_out = 0 if everything else len(turns) - FIRST_TURNS - LAST_TURNS
    for number, turn in enumerate(turns):
        if number == FIRST_TURNS and left_out > 0:
            yield Text(f"\n… {left_out} turns left out (--all shows them)", style="dim")
        if not FIRST_TURNS <= number < FIRST_TURNS + left_out:
            yield _turn(turn, everything, shown)


def _turn(turn: ShownTurn, everything: bool, trial: ShownTrial) -> RenderableType:
    parts: list[RenderableType] = [Text(f"\n{turn_title(turn)}", style="bold underline")]
    if line := routing_line(turn, trial.chosen):
        parts.append(Text(legible(f"routing: {line}"), style="dim"))
    for title, tokens in ((context_title(turn), turn.context), (sampled_title(turn, trial.divided), turn.sampled)):
        parts += [Text(title, style="dim"), Padding(_text(tokens, everything), (0, 0, 0, 2), expand=False)]
    if line := least_likely(turn.sampled):
        parts.append(Text(f"least likely: {line}", style="dim"))
    if line := experts_line(turn.sampled, everything):
        layers = Columns([Text(each, style="dim") for each in line.split("; ")], padding=(0, 3))
        parts += [Text("experts most of them went through:", style="dim"), Padding(layers, (0, 0, 0, 2))]
    return Group(*parts)


def _text(tokens: Tokens, everything: bool) -> Text:
    n = len(tokens)
    left_out = range(HEAD, n - TAIL) if not everything and n > HEAD + TAIL else range(0)
    text = Text()
    for index in range(n):
        if index in left_out:
            if index == left_out.start:
                text.append(f" … {len(left_out):,} ids left out … ", style="dim")
            continue
        logprob, put_in = tokens.logprobs[index], tokens.placeholder[index]
        part = f"⟦{tokens.texts[index]}⟧" if put_in else tokens.texts[index]
        text.append(legible(part), style=STYLES[shade(logprob)] if tokens.loss[index] else "italic" if put_in else "")
    text.rstrip()
    return text


def list_table(found: Sequence[TrialSummary]) -> Table:
    """A line a trial. How its boundaries are is told where some aren't exact. Ids and numbers are never cut nor wrapped: a table of
    long ones is wider than the console, and printed without cropping."""
    cases = [case for case in Boundary if case is not Boundary.EXACT and any(each.boundaries[case] for each in found)]
    rows = []
    for each in found:
        words = [each.id, each.task, each.ended_by]
        words += ["" if each.reward is None else f"{each.reward:g}", {None: "", True: "yes", False: "no"}[each.resolved]]
        words += [str(each.turns), f"{each.loss_tokens:,}/{each.tokens:,}"]
        words += [str(sum(each.boundaries[case] for case in cases))] if cases else []
        rows.append([Text(legible(word)) for word in words])
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    names = ("trial", "task", "ended by", "reward", "resolved", "turns", "loss/\ntokens", *(["not\nexact"] if cases else []))
    for index, name in enumerate(names):
        longest = max((row[index].cell_len for row in rows), default=0)
        if name in WRAPPED:
            table.add_column(name, overflow="fold", min_width=min(longest, WRAPPED[name]))
        else:
            table.add_column(name, no_wrap=True, min_width=longest, justify="left" if name == "trial" else "right")
    for row in rows:
        table.add_row(*row)
    return table


def list_summary(found: Sequence[TrialSummary], baseline: str = "") -> str:
    """What all of them come to; `baseline` is the stitcher's name where it isn't faithful."""
    rewards = [each.reward for each in found if each.reward is not None]
    mean = f", mean reward {np.mean(rewards):.3f}" if rewards else ""
    verified = [each.resolved for each in found if each.resolved is not None]
    resolved = f", {sum(verified)} of {len(verified)} resolved" if verified else ""
    boundaries = told_boundaries(sum((each.boundaries for each in found), Counter()))
    anew = f"; stitched by {baseline}, so that its ids aren't always those that were sampled" if baseline else ""
    trials = f"{len(found)} trial{'s' if len(found) != 1 else ''}"
    return f"{trials}{mean}{resolved}, {sum(each.tokens for each in found):,} tokens, boundaries: {boundaries}{anew}"

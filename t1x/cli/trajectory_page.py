"""A trial as one HTML page: nothing but the file is needed to read it, and nothing that a program printed can change it.

Invariants:
- text reaches the page escaped, as content or within a quoted attribute, and nowhere else;
- a page has some 20 bytes a token and 4 / 3 an expert of those that it lists, so that a browser can still show it.
"""

import json
import math
from base64 import b64encode
from collections.abc import Iterator
from html import escape

import numpy as np

from t1x.cli.token_name import token_name
from t1x.cli.trajectory_page_style import SCRIPT, STYLE
from t1x.cli.trajectory_wording import (
    SHADES,
    context_title,
    experts_line,
    facts,
    replaced,
    routing_line,
    sampled_title,
    shade,
    turn_facts,
    turn_title,
)
from t1x.text.visible import legible
from t1x.trajectory.shown import ShownTrial, ShownTurn
from t1x.trajectory.shown_tokens import Tokens

MOST_EXPERTS = 4_000_000
"""Experts that a page has token by token; of a trial that has more of them each turn's most frequent ones are told alone."""
MOST_TOKENS = 300_000
"""Tokens of a trial that a page has; of one that has more, long prompts are cut."""
HEAD, TAIL = 400, 200
"""Ids of a prompt's new part that are left of it then."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_BADGES = ("reward", "resolved", "ended by", "turns")
"""Facts that stand first."""


def trial_page(shown: ShownTrial, batch: str) -> Iterator[str]:
    """The page in pieces."""
    trial, parts = shown.trial, [part for turn in shown.turns for part in (turn.context, turn.sampled)]
    listed, whole = sum(part.experts.size for part in parts) <= MOST_EXPERTS, sum(map(len, parts)) <= MOST_TOKENS
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_safe(f"{trial.id} · {trial.task}")}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f'<h1>{_safe(trial.id)} <small>{_safe(trial.task)}</small></h1>\n<p class="badges">'
    )
    told = dict(facts(shown, batch))
    for name in _BADGES:
        good = {True: "good", False: "bad", None: ""}[trial.resolved] if name == "resolved" else ""
        yield f'<span class="{good}">{name} {_safe(told.pop(name))}</span>'
    yield "</p>\n<dl>\n"
    for name, value in told.items():
        yield f"<dt>{_safe(name)}</dt><dd>{_safe(value)}</dd>\n"
    if not listed:
        yield "<dt>experts by token</dt><dd>too many to be listed token by token</dd>\n"
    if not whole:
        yield f"<dt>long prompts</dt><dd>cut: a page has at most {MOST_TOKENS:,} tokens</dd>\n"
    yield f"</dl>\n{_legend()}<nav>"
    for number, turn in enumerate(shown.turns):
        yield f'<a href="#t{number}" class="{turn.boundary or ""}" title="{_safe(turn_title(turn))}">{turn.turn.index}</a>'
    yield "</nav>\n"
    for number, turn in enumerate(shown.turns):
        yield from _turn(number, turn, shown, listed, whole)
    yield f'<div id="tip" role="status" hidden></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n'


def _legend() -> str:
    edges = [f"p ≥ {SHADES[0]:g}", *(f"≥ {edge:g}" for edge in SHADES[1:]), f"< {SHADES[-1]:g}"]
    shades = "".join(f'<i class="p{index}">{_safe(edge)}</i>' for index, edge in enumerate(edges))
    return (
        f'<div class="legend"><span>sampled tokens with loss, by their probability: {shades}</span>'
        f'<span><span class="context">on grey</span> context, without loss</span>'
        f'<span><i class="r">dashed</i> experts substituted</span>'
        f'<span><i class="h">framed</i> placeholder, put in by the harness</span>'
        f'<span class="strip"><b class="retokenized">1</b> boundary not exact &nbsp; '
        f'<b>1</b><b class="restart">2</b> with a gap: a new trajectory begins</span>'
        f'<span class="keys">point at a token, or press Tab, then ← → to go from one to the next; j, k: next, previous turn</span>'
        f"</div>\n"
    )


def _turn(number: int, turn: ShownTurn, trial: ShownTrial, listed: bool, whole: bool) -> Iterator[str]:
    kinds = {replaced(turn): "anew"}
    told = turn_facts(turn)
    if turn.boundary:
        kinds[told[0]] = str(turn.boundary)
    badges = "".join(f'<b class="{kinds.get(fact, "")}">{_safe(fact)}</b>' for fact in told)
    yield f'<details open class="turn" id="t{number}"><summary><h2>turn {turn.turn.index}{badges}</h2></summary>\n'
    if line := routing_line(turn, trial.chosen):
        yield f"<p>routing: {_safe(line)}</p>\n"
    yield f"<p>{_safe(context_title(turn))}</p>\n"
    n = len(turn.context)
    if whole or n <= HEAD + TAIL:
        yield from _block(turn.context, "context", listed)
    else:
        yield from _block(turn.context.part(0, HEAD), "context", listed)
        yield f"<p>… {n - HEAD - TAIL:,} ids left out …</p>\n"
        yield from _block(turn.context.part(n - TAIL, n), "context", listed)
    yield f"<p>{_safe(sampled_title(turn, trial.divided))}</p>\n"
    yield from _block(turn.sampled, "sampled", listed)
    if line := experts_line(turn.sampled):
        yield f'<details class="more"><summary>experts most of them went through</summary>{_safe(line)}</details>\n'
    yield "</details>\n"


def _block(tokens: Tokens, kind: str, listed: bool) -> Iterator[str]:
    """Tokens, each an element, with what the script tells of them: numbers in attributes of their block, in their order. Nothing
    where there is none."""
    if not len(tokens):
        return
    data = {"ids": " ".join(map(str, tokens.ids.tolist()))}
    if kind == "sampled":
        data["logprobs"] = " ".join(f"{each:.4f}" for each in tokens.logprobs.tolist())
    if not np.isnan(tokens.agreement).all():
        data["equal"] = " ".join("" if math.isnan(each) else f"{100 * each:.4g}" for each in tokens.agreement.tolist())
    if listed and tokens.experts.size:
        _, layers, k = tokens.experts.shape
        data["shape"] = f"{layers} {k} {tokens.experts.itemsize}"
        data["experts"] = b64encode(tokens.experts.astype(tokens.experts.dtype.newbyteorder("<")).tobytes()).decode()
    told = "".join(f' data-{name}="{value}"' for name, value in data.items())
    yield f'<pre class="{kind}" tabindex="0" aria-label="{kind} tokens"{told}>'
    for index, text in enumerate(tokens.texts):
        flags = (
            (tokens.loss[index], f"p{shade(float(tokens.logprobs[index]))}"),
            (tokens.substituted[index], "r"),
            (tokens.placeholder[index], "h"),
            (kind == "sampled" and "\n" in text, "n"),
        )
        marks = [mark for flag, mark in flags if flag]
        called = token_name(tokens.bytes[index])
        name = f' data-name="{_safe(called)}"' if called != json.dumps(legible(text), ensure_ascii=False) else ""
        kind_of = f' class="{" ".join(marks)}"' if marks else ""
        yield f"<i{kind_of}{name}>{_safe(text)}</i>"
    yield "</pre>\n"


def _safe(text: str) -> str:
    return escape(legible(text), quote=True)

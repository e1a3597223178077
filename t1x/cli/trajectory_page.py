"""A trial as one HTML page: nothing but the file is needed to read it, and nothing that a program printed can change it.

Invariant: text reaches the page escaped, as content or within a quoted attribute, and nowhere else.
"""

import math
from collections.abc import Iterator
from html import escape

from t1x.cli.token_name import token_name
from t1x.cli.trajectory_wording import (
    SHADES,
    context_title,
    experts_line,
    facts,
    routing_line,
    sampled_title,
    shade,
    turn_title,
)
from t1x.text.visible import legible
from t1x.trajectory.shown import ShownTrial, ShownTurn
from t1x.trajectory.shown_tokens import Tokens

MOST_EXPERTS = 4_000_000
"""Experts that a page lists token by token; of a trial that has more of them each turn's most frequent ones are told alone, so that
a browser can still show the page."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #6a737d; --line: #d8dee4; --context: #f3f5f7;
  --p0: #d5f0dc; --p1: #d6eaf8; --p2: #fdf3c4; --p3: #fadcc0; --p4: #f8c9c9; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe5eb; --paper: #14171b; --faint: #8b949e; --line: #30363d;
  --context: #1d2127; --p0: #17432a; --p1: #163d57; --p2: #4d4310; --p3: #5c3512; --p4: #62202a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1rem 5rem; max-width: 60rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 0; display: inline; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; } dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
details { border-top: 1px solid var(--line); padding: .6rem 0; } summary { cursor: pointer; }
p { margin: .5rem 0 .2rem; color: var(--faint); font-size: .85rem; }
pre { margin: 0; padding: .5rem; border-radius: .3rem; background: var(--context); white-space: pre-wrap; overflow-wrap: anywhere;
  font: .85rem/1.6 ui-monospace, monospace; }
i { font-style: normal; } i:hover { outline: 1px solid var(--ink); } i.r { border-bottom: 2px dashed #c33; }
i.h { border: 1px solid var(--faint); }
.p0 { background: var(--p0); } .p1 { background: var(--p1); } .p2 { background: var(--p2); } .p3 { background: var(--p3); }
.p4 { background: var(--p4); } .legend i { padding: 0 .3rem; margin-right: .3rem; color: var(--ink); }
#told { position: fixed; inset: auto 0 0; padding: .5rem 1rem; background: var(--paper); border-top: 1px solid var(--line);
  font: .8rem ui-monospace, monospace; overflow-wrap: anywhere; }
"""
_SCRIPT = """
const told = document.getElementById("told");
for (const kind of ["pointerover", "click"]) document.addEventListener(kind, event => {
  if (event.target.title) told.textContent = event.target.title;
});
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def trial_page(shown: ShownTrial, batch: str) -> Iterator[str]:
    """The page in pieces."""
    title = _safe(f"{shown.trial.id} · {shown.trial.task}")
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n<body>\n'
        f"<h1>{title}</h1>\n<dl>\n"
    )
    listed = sum(part.experts.size for turn in shown.turns for part in (turn.context, turn.sampled)) <= MOST_EXPERTS
    for name, value in facts(shown, batch):
        yield f"<dt>{_safe(name)}</dt><dd>{_safe(value)}</dd>\n"
    if not listed:
        yield "<dt>experts by token</dt><dd>too many to be listed token by token</dd>\n"
    yield f'</dl>\n<p class="legend">{_legend()}</p>\n'
    for turn in shown.turns:
        yield from _turn(turn, shown, listed)
    yield '<div id="told">A token under the pointer, or touched, is told here.</div>\n'
    yield f"<script>{_SCRIPT}</script>\n</body>\n</html>\n"


def _legend() -> str:
    edges = (*(f"≥ {edge:g}" for edge in SHADES), f"< {SHADES[-1]:g}")
    shades = "".join(f'<i class="p{index}">{_safe(edge)}</i>' for index, edge in enumerate(edges))
    return f"Sampled tokens with loss, by probability: {shades} dashed: experts substituted; framed: placeholder ids"


def _turn(turn: ShownTurn, trial: ShownTrial, listed: bool) -> Iterator[str]:
    yield f"<details open><summary><h2>{_safe(turn_title(turn))}</h2></summary>\n"
    if line := routing_line(turn, trial.chosen):
        yield f"<p>routing: {_safe(line)}</p>\n"
    for title, tokens in ((context_title(turn), turn.context), (sampled_title(turn, trial.divided), turn.sampled)):
        yield f"<p>{_safe(title)}</p>\n<pre>"
        yield from _tokens(tokens, listed)
        yield "</pre>\n"
    if line := experts_line(turn.sampled):
        yield f"<p>experts most of them went through: {_safe(line)}</p>\n"
    yield "</details>\n"


def _tokens(tokens: Tokens, listed: bool) -> Iterator[str]:
    for index, text in enumerate(tokens.texts):
        loss, logprob = bool(tokens.loss[index]), float(tokens.logprobs[index])
        said = [f"id {tokens.ids[index]}", token_name(tokens.bytes[index]) + ("" if text else ", part of the next character")]
        if loss:
            said.append(f"log-probability {logprob:.4f}")
        if not math.isnan(tokens.agreement[index]):
            said.append(f"experts {100 * tokens.agreement[index]:.4g} % equal")
        if tokens.substituted[index]:
            said.append("experts substituted")
        if tokens.placeholder[index]:
            said.append("placeholder: put in by the harness")
        if listed and index < len(tokens.experts) and tokens.experts.size:
            layers = (f"{layer}: {' '.join(map(str, row))}" for layer, row in enumerate(tokens.experts[index].tolist()))
            said.append(f"experts by layer {', '.join(layers)}")
        flags = (loss, f"p{shade(logprob)}"), (tokens.substituted[index], "r"), (tokens.placeholder[index], "h")
        marks = [mark for flag, mark in flags if flag]
        kind = f' class="{" ".join(marks)}"' if marks else ""
        yield f'<i{kind} title="{_safe(", ".join(said))}">{_safe(text)}</i>'


def _safe(text: str) -> str:
    return escape(legible(text), quote=True)

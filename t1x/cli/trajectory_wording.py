"""What is said of a trial, in the terminal and on its page alike. Texts are as programs made them: whoever prints them makes them
visible."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from t1x.cli.token_name import token_name
from t1x.trajectory.records import Boundary
from t1x.trajectory.shown import Chosen, ShownTrial, ShownTurn
from t1x.trajectory.shown_tokens import Tokens
from t1x.trajectory.stored import StoredTrial

SHADES = (0.9, 0.6, 0.3, 0.1)
"""Probabilities that part the shades of sampled tokens, from likely (0) to unlikely (4)."""

ENDED = {"stop": "ended by its stop id", "length": "stopped by length", "abort": "aborted"}
"""How a completion came to its end."""
ANNOUNCED = "announced by the harness"
"""Why a turn is a restart: its history was compacted or rewritten."""
LAYERS, EXPERTS = 4, 3
"""Of a turn's experts that are told: the first layers, and of each those that were chosen most often."""
LEAST_LIKELY = 3
"""Sampled tokens of a turn that are told with their probability."""


def shade(logprob: float) -> int:
    """0 to 4 by the token's probability."""
    return sum(math.exp(min(logprob, 0.0)) < edge for edge in SHADES)


def facts(shown: ShownTrial, batch: str) -> list[tuple[str, str]]:
    """The trial's head: what each line is called, and says."""
    trial = shown.trial
    streams = trial.trajectories
    tokens, loss = sum(len(each.token_ids) for each in streams), sum(int(np.count_nonzero(each.loss_mask)) for each in streams)
    logprobs = [each.logprobs[each.loss_mask] for each in streams]
    every = np.concatenate([np.array([], np.float32), *logprobs])
    lines = [
        ("trial", f"{trial.id}, of {batch}"),
        ("task", trial.task),
        ("ended by", trial.ended_by),
        ("reward", "none" if trial.reward is None else f"{trial.reward:g}"),
        ("resolved", {None: "not verified", True: "yes", False: "no"}[trial.resolved]),
        ("turns", str(len(trial.turns))),
        ("trajectories", f"{len(streams)}, {tokens:,} tokens, {loss:,} of them with loss"),
        ("policy version", ", ".join(map(str, sorted({turn.completion.version for turn in trial.turns}))) or "none"),
        ("boundaries", told_boundaries(Counter(case for each in streams for case in each.boundaries))),
    ]
    if len(every):
        whose = "" if shown.divided else ", of the trajectories"
        said = f"{every.mean(dtype=np.float64):.3f} nats a token on average, least {every.min():.3f}{whose}"
        lines.append(("log-probability", said))
    if recorded := [each.shape[1:] for each in (turn.completion.routing for turn in trial.turns) if each.shape[1]]:
        lines.append(("experts", f"{recorded[0][1]} a token in each of {recorded[0][0]} layers, as the sampler chose them"))
    if shown.chosen and not shown.divided:
        lines.append(("routing", f"not compared with {shown.chosen.weights}, since no trajectory is shown"))
    elif said := _agreement(shown.turns, shown.chosen):
        lines.append(("routing", f"{said} ({shown.chosen.note})" if shown.chosen and shown.chosen.note else said))
    if said := _substituted([each.substituted_rows for each in streams]):
        lines.append(("substituted rows", said))
    if others := sum(turn.replaced for turn in shown.turns):
        lines.append(("other ids", f"in {others} of {len(shown.turns)} turns the stream's ids aren't those that were sampled"))
    if not shown.divided:
        lines.append(("shown", undivided(trial)))
    return lines


def _substituted(rows: Sequence[Sequence[int]]) -> str:
    """`3: 47, 85 in trajectory 0; 12 in trajectory 1`; of a trajectory the first eight are named."""
    named = [", ".join([*map(str, each[:8]), *(["…"] if len(each) > 8 else [])]) for each in rows]
    where = [f"{each} in trajectory {index}" if len(rows) > 1 else each for index, each in enumerate(named) if each]
    return f"{sum(map(len, rows))}: {'; '.join(where)}" if where else ""


def undivided(trial: StoredTrial) -> str:
    """Why its turns are shown and not its streams."""
    if not trial.trajectories:
        return "what its turns captured, since nothing was made of it to train on"
    return "what its turns captured, since its streams can't be divided among them; `t1x audit` tells where they differ"


def turn_facts(shown: ShownTurn) -> list[str]:
    """What is told of a turn beside its number: its boundary first, if any, then whether its ids are others than it sampled."""
    done = shown.turn.completion
    why = f" ({ANNOUNCED})" if shown.boundary is Boundary.RESTART and shown.turn.restarted else ""
    case = [f"{shown.boundary}{why}"] if shown.boundary else []
    return [
        *case,
        *filter(None, [replaced(shown)]),
        f"version {done.version}",
        f"temperature {shown.turn.temperature:g}",
        ENDED[done.finish_reason],
    ]


def replaced(shown: ShownTurn) -> str:
    """How the stream's ids came about where they aren't those that the turn sampled; else empty."""
    return "" if not shown.replaced else "encoded anew" if shown.same_text else "not as sampled"


def turn_title(shown: ShownTurn) -> str:
    """A turn's first line."""
    return f"turn {shown.turn.index}: {', '.join(turn_facts(shown))}"


def context_title(shown: ShownTurn) -> str:
    """What stands above the prompt's new part."""
    count = shown.turn.placeholder_tokens
    placed = f", {count} placeholder id{'s' * (count > 1)} among them" if count else ""
    return f"prompt: {len(shown.turn.prompt_ids):,} ids, {len(shown.context):,} new{placed}"


def sampled_title(shown: ShownTurn, divided: bool) -> str:
    """What stands above the completion; `divided` is the trial's."""
    n, loss = len(shown.sampled), int(np.count_nonzero(shown.sampled.loss))
    marked = "captured" if not divided else "with loss" if loss == n else f"{loss} of them with loss"
    mean = f", mean log-probability {shown.sampled.mean_logprob:.3f}" if n else ""
    if not shown.replaced:
        return f"sampled: {n:,} ids {marked}{mean}"
    done = shown.turn.completion
    theirs = f" (mean log-probability {done.logprobs.mean(dtype=np.float64):.3f})" if len(done.ids) else ""
    sampled = f"{len(done.ids):,} sampled{theirs}"
    how = f"{replaced(shown)} from" if shown.same_text else "in place of"
    return f"not sampled: {n:,} ids, {how} {sampled}; {marked}{mean}"


def experts_line(tokens: Tokens, everything: bool = True) -> str:
    """`layer 0: 12 (88 %), 3 (41 %); layer 1: …`: which experts most of the tokens went through; empty where none is recorded."""
    rows, layers, k = tokens.experts.shape
    if not rows * layers * k:
        return ""
    told = []
    for layer in range(layers if everything else min(layers, LAYERS)):
        counts = np.bincount(tokens.experts[:, layer].ravel())
        most = np.argsort(-counts, kind="stable")[:EXPERTS]
        told.append(f"layer {layer}: " + ", ".join(f"{each} ({100 * counts[each] / rows:.0f} %)" for each in most if counts[each]))
    return "; ".join([*told, *([f"… {layers - len(told)} more layers"] if len(told) < layers else [])])


def least_likely(tokens: Tokens) -> str:
    """`" shelf" 0.0012, byte 0xE2 0.03`: the least probable of them, the least one first."""
    order = np.argsort(tokens.logprobs, kind="stable")[:LEAST_LIKELY].tolist()
    return ", ".join(f"{token_name(tokens.bytes[at])} {math.exp(tokens.logprobs[at]):.2g}" for at in order)


def routing_line(shown: ShownTurn, chosen: Chosen | None) -> str:
    """What a turn says of routing; empty where it says nothing. `chosen` is the trial's."""
    rows = int(np.count_nonzero(shown.context.substituted) + np.count_nonzero(shown.sampled.substituted))
    substituted = f"{rows} row{'s' if rows > 1 else ''} substituted" if rows else ""
    return "; ".join(filter(None, [_agreement([shown], chosen), substituted]))


def _agreement(turns: Sequence[ShownTurn], chosen: Chosen | None) -> str:
    """`40 rows captured again, 97.5 % equal`, or what part of the sampler's experts these weights choose."""
    if chosen is not None:
        shares = np.concatenate([[np.nan], *(part.agreement for turn in turns for part in (turn.context, turn.sampled))])
        known = shares[~np.isnan(shares)]
        return f"{chosen.weights} chooses {100 * known.mean():.4g} % of the sampler's experts" if len(known) else ""
    captured, equal = sum(turn.recaptured for turn in turns), sum(turn.equal for turn in turns)
    return f"{captured:,} row{'s' if captured > 1 else ''} captured again, {100 * equal / captured:.4g} % equal" if captured else ""


def told_boundaries(counts: Counter[Boundary]) -> str:
    """`2 exact, 1 restart`."""
    return ", ".join(f"{counts[case]} {case}" for case in Boundary if counts[case]) or "none"

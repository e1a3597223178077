"""What is said of a trial, in the terminal and on its page alike. Texts are as programs made them: whoever prints them makes them
visible."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from t1x.trajectory.records import Boundary
from t1x.trajectory.shown import ShownTrial, ShownTurn
from t1x.trajectory.stored import StoredTrial

SHADES = (0.9, 0.6, 0.3, 0.1)
"""Probabilities that part the shades of sampled tokens, from likely (0) to unlikely (4)."""


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
        lines.append(("log-probability", f"{every.mean(dtype=np.float64):.3f} nats a token on average, least {every.min():.3f}"))
    if said := _agreement(shown.turns, shown.chosen):
        lines.append(("routing", said))
    substituted = [row for each in streams for row in each.substituted_rows]
    if substituted:
        rows = [*map(str, substituted[:8]), *(["…"] if len(substituted) > 8 else [])]
        lines.append(("substituted rows", f"{len(substituted)}: {', '.join(rows)}"))
    if not shown.divided:
        lines.append(("shown", undivided(trial)))
    return lines


def undivided(trial: StoredTrial) -> str:
    """Why its turns are shown and not its streams."""
    if not trial.trajectories:
        return "what its turns captured, since nothing was made of it to train on"
    return "what its turns captured, since its streams can't be divided among them; `t1x audit` tells where they differ"


def turn_title(shown: ShownTurn) -> str:
    """A turn's first line."""
    done = shown.turn.completion
    case = f"{shown.boundary}, " if shown.boundary else ""
    return f"turn {shown.turn.index}: {case}version {done.version}, temperature {shown.turn.temperature:g}, {done.finish_reason}"


def context_title(shown: ShownTurn) -> str:
    """What stands above the prompt's new part."""
    placed = f", {shown.turn.placeholder_tokens} put in for the policy" if shown.turn.placeholder_tokens else ""
    return f"prompt: {len(shown.turn.prompt_ids):,} ids, {len(shown.context):,} new{placed}"


def sampled_title(shown: ShownTurn) -> str:
    """What stands above the completion."""
    n, loss = len(shown.sampled), int(np.count_nonzero(shown.sampled.loss))
    marked = "with loss" if loss == n else "without loss" if not loss else f"{loss} of them with loss"
    mean = f", mean log-probability {shown.sampled.mean_logprob:.3f}" if n else ""
    return f"sampled: {n:,} ids {marked}{mean}"


def routing_line(shown: ShownTurn, chosen: bool) -> str:
    """What a turn says of routing; empty where it says nothing. `chosen` is the trial's."""
    rows = int(np.count_nonzero(shown.context.substituted) + np.count_nonzero(shown.sampled.substituted))
    substituted = f"{rows} row{'s' if rows > 1 else ''} substituted" if rows else ""
    return "; ".join(filter(None, [_agreement([shown], chosen), substituted]))


def _agreement(turns: Sequence[ShownTurn], chosen: bool) -> str:
    """`40 rows captured again, 97.5 % equal`, or what part of the sampler's experts the policy chooses that was asked."""
    if chosen:
        shares = np.concatenate([[np.nan], *(part.agreement for turn in turns for part in (turn.context, turn.sampled))])
        known = shares[~np.isnan(shares)]
        return f"the policy chooses {100 * known.mean():.4g} % of the sampler's experts" if len(known) else ""
    captured, equal = sum(turn.recaptured for turn in turns), sum(turn.equal for turn in turns)
    return f"{captured:,} row{'s' if captured > 1 else ''} captured again, {100 * equal / captured:.4g} % equal" if captured else ""


def told_boundaries(counts: Counter[Boundary]) -> str:
    """`2 exact, 1 restart`."""
    return ", ".join(f"{counts[case]} {case}" for case in Boundary if counts[case]) or "none"

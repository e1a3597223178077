"""What a trial took, without a clock."""

from collections.abc import Iterable

from t1x.trajectory.records import Turn


def virtual_cost(turns: Iterable[Turn]) -> int:
    """Tokens that a trial read and sampled: of each prompt what it has beyond the turn before it, or all of it where it is shorter
    (history was compacted), and of each completion every id."""
    cost = held = 0
    for turn in turns:
        prompt, sampled = len(turn.prompt_ids), len(turn.completion.ids)
        cost += (prompt - held if prompt >= held else prompt) + sampled
        held = prompt + sampled
    return cost

"""The invariants of routing alignment (report, section 12.3) as named checks. Where each is asked for:

- 1 and 2 when a turn comes (`routing.py`), 3 when a batch is made (`training/batch.py`), 7 before a sample's numerator
  (`training/replayed_rows.py`);
- 4 and 6 are the auditor's own (`audit_rows.py`), on every batch of a campaign;
- 5 and 8 by tests alone. 5 waits for a trainer that shards sequences: none does yet. 8 needs no check at work: passes of the
  critic are given no record.

A check of a whole answers with what is wrong, "" where it holds; one of rows with flags, true where a row breaks it. None raises:
who asks knows whose fault it is.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.parallel.sharding import Rank, Sharding
from t1x.trajectory.records import Trajectory, Turn


def rows_of_a_turn(turn: Turn) -> str:
    """1. A turn's rows reach to ρ_i = |p_i| + |a_i| - 1, from the first position that an earlier turn doesn't have."""
    done = turn.completion
    due, start, got = len(turn.prompt_ids) + len(done.ids) - 1, done.routing_start, len(done.routing)
    if start >= 0 and start + got == due:
        return ""
    kind = "absent" if not got and start < due else "short" if start + got < due else "long"
    return (
        f"its routing is {kind}: rows from position {start} to {start + got}, where prompt and completion have {due} (all ids but "
        f"the last)"
    )


def cached_rows(served: Experts, captured: Experts) -> npt.NDArray[np.bool_]:
    """2. Rows [n, layers, k] that a cache served for a shared prefix equal those captured before."""
    return np.asarray((served != captured).any(axis=(1, 2)))


def stitched_rows(stream: Trajectory) -> str:
    """3. A stream of N tokens has ρ = N - 1 rows, and N of all else."""
    n = len(stream.token_ids)
    mask, logprobs, rows = len(stream.loss_mask), len(stream.logprobs), len(stream.routed_experts)
    if mask == logprobs == n == rows + 1:
        return ""
    return (
        f"its streams disagree: {n} token ids, {mask} of the loss mask, {logprobs} log-probabilities, {rows} routing rows (one "
        f"fewer than token ids is right)"
    )


def one_sharding(
    sharding: Sharding, tokens: Mapping[Rank, npt.NDArray[np.int32]], rows: Mapping[Rank, Experts], samples: Sequence[Trajectory]
) -> str:
    """5. Token ids and routing rows went through the same Π: un-sharding gives both back."""
    for name, shards, short in (("token_ids", tokens, False), ("routed_experts", rows, True)):
        for index, (sample, back) in enumerate(zip(samples, sharding.unshard(shards, short=short), strict=True)):
            if not np.array_equal(getattr(sample, name), back):
                return f"sample {index}: un-sharding doesn't give its {name} back"
    return ""


def same_rows_in_both_passes(denominator: Sequence[Experts | None], numerator: Sequence[Experts | None]) -> str:
    """7. The passes of denominator and numerator replay the same rows, of every sample; None where a pass routed freely."""
    for index, (old, new) in enumerate(zip(denominator, numerator, strict=True)):
        if (old is None) != (new is None):
            return f"sample {index}: only the {'numerator' if old is None else 'denominator'} replays its routing rows"
        if old is not None and new is not None and not np.array_equal(old, new):
            return f"sample {index}: numerator and denominator replay different routing rows"
    return ""


def routes_freely(experts: npt.NDArray[np.integer], logits: npt.NDArray[np.floating]) -> str:
    """8. Critic and reference never replay: the experts [n, k] of a layer are those of its own k largest logits [n, E]."""
    chosen = np.sort(np.take_along_axis(logits, experts.astype(np.int64), axis=1), axis=1)
    largest = np.sort(logits, axis=1)[:, logits.shape[1] - experts.shape[1] :]
    differs = (chosen != largest).any(axis=1)
    return f"row {int(differs.argmax())}: its experts aren't those of its own largest logits" if differs.any() else ""

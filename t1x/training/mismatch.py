"""The gap between what sampled and what is trained, in log-probabilities (report, sections 4.4 and 12).

Invariant: each metric is Σ|·|/M over all loss tokens of the step, never a mean of micro-batch means.
"""

import numpy as np
import numpy.typing as npt

LogProbs = npt.NDArray[np.floating]


def gap_metrics(sampler: LogProbs, behaviour: LogProbs, current: LogProbs) -> dict[str, float]:
    """The three gaps over the step's loss tokens, each argument [M]: the sampler's q, the behaviour pass's o (the weights that
    sampled, run by the trainer) and the current pass's c before the optimizer step.

    `mismatch/engine_gap` |o - q| is the defect (24b); `mismatch/version_skew` |c - o| is legitimate (24a) and exactly 0 where the
    batch was sampled from the current version; `mismatch/logprob_gap` |c - q| is the report's figure.
    """
    q, o, c = (np.asarray(logprobs, dtype=np.float64) for logprobs in (sampler, behaviour, current))
    return {
        "mismatch/engine_gap": float(np.abs(o - q).mean()),
        "mismatch/version_skew": float(np.abs(c - o).mean()),
        "mismatch/logprob_gap": float(np.abs(c - q).mean()),
    }

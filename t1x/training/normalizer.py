"""What the sum of a batch's losses is divided by.

Invariant: a token's weight depends on the whole optimizer step only, so neither micro-batches nor ranks change a result.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from t1x.training.batch import Batch

Normalizer = Literal["tokens", "samples"]
"""`tokens`: the mean over the loss tokens of an optimizer step (the report doesn't say; long samples weigh more). `samples`: the
mean over its samples of each one's mean over its loss tokens (GRPO's own, and GSPO's)."""


def loss_weights(batch: Batch, part: npt.NDArray[np.int64], normalizer: Normalizer) -> npt.NDArray[np.float64]:
    """[M]: what the loss of each loss token counts in the optimizer step over the samples `part`; 0 outside of them."""
    weights = np.zeros(len(batch.counts))
    weights[part] = 1 / batch.counts[part].sum() if normalizer == "tokens" else 1 / (batch.counts[part] * len(part))
    return np.repeat(weights, batch.counts)

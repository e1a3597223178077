"""Which routing rows the pass of the denominator replayed.

Invariant: the numerator replays the same rows of every sample, or routes freely where the denominator did (report, section 12.3).
"""

from hashlib import blake2b
from weakref import ref

import numpy as np
import numpy.typing as npt

from t1x.model.router import RouterMode
from t1x.training.batch import Batch
from t1x.training.microbatch import MicroBatch
from t1x.trajectory.invariants import same_rows_in_both_passes

Digest = npt.NDArray[np.uint8]


class ReplayedRows:
    """Of one batch, and of those of its samples whose denominator was computed here. Rows are told apart by 16-byte digests."""

    def __init__(self, batch: Batch) -> None:
        self._batch, self._digests = ref(batch), dict[int, Digest | None]()

    def note(self, micro: MicroBatch, mode: RouterMode) -> None:
        """The denominator of these samples was computed in this mode."""
        self._digests |= zip(micro.indices.tolist(), _digests(micro, mode), strict=True)

    def require_same(self, batch: Batch, micro: MicroBatch, mode: RouterMode) -> None:
        """Raises `RuntimeError` where the numerator of these samples isn't to go through the same rows."""
        if self._batch() is not batch:
            return
        known = [
            (index, now) for index, now in zip(micro.indices.tolist(), _digests(micro, mode), strict=True) if index in self._digests
        ]
        before = [self._digests[index] for index, _ in known]
        if flaw := same_rows_in_both_passes(before, [now for _, now in known]):
            raise RuntimeError(f"routing replay: of samples {[index for index, _ in known]}, {flaw}")


def _digests(micro: MicroBatch, mode: RouterMode) -> list[Digest | None]:
    if mode is RouterMode.FREE:
        return [None] * len(micro.lengths)
    rows = np.split(micro.routing, np.cumsum(micro.lengths)[:-1])
    return [np.frombuffer(blake2b(each.tobytes(), digest_size=16).digest(), np.uint8) for each in rows]

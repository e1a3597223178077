"""The baseline without token-in, token-out: a trial's text, encoded again (report, section 4.2).

Each stream of the token stitcher is decoded, special tokens included, and encoded as a whole; what was captured goes to the new ids
by the characters that they stand for. Ids between two characters at which both an old and a new id begin are a *group*:
- ids of a group that encoding left as it was keep all that is theirs;
- otherwise a new id carries loss where all of its characters were sampled. One that holds characters of the context too is context,
  so that log-probabilities of a text that nobody sampled are never trained on;
- the log-probabilities that were sampled in a group are summed, and shared evenly by its ids that carry loss; the sum of a trial is
  kept but for groups that have none;
- a routing row and a policy version are those of the old id that covers the new id's last character. The last old id has no row, so
  the row before it stands in where it became several ids.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.text.tokenizer import ChatTokenizer, EncodedText, Ids
from t1x.trajectory.records import Trajectory, Turn, VersionSpan
from t1x.trajectory.stitcher import TrialStitcher

Indices = npt.NDArray[np.int64]


class RetokenizingTrialStitcher:
    """Stitches one trial by another stitcher, whose streams it encodes again."""

    def __init__(self, faithful: TrialStitcher, tokenizer: ChatTokenizer) -> None:
        self._faithful, self._tokenizer = faithful, tokenizer

    def add(self, turn: Turn) -> None:
        self._faithful.add(turn)

    def finish(self) -> list[Trajectory]:
        return [retokenize(stream, self._tokenizer) for stream in self._faithful.finish()]


def retokenize(stream: Trajectory, tokenizer: ChatTokenizer) -> Trajectory:
    """The same text in the ids that the tokenizer encodes it to. A stream without a sampled id stays as it is."""
    old = tokenizer.decode_spans(stream.token_ids)
    new = tokenizer.encode_spans(old.text)
    if not stream.loss_mask.any() or np.array_equal(old.ids, new.ids):
        return stream
    old_borders, new_borders = _groups(old, new)
    group = np.repeat(np.arange(len(new_borders) - 1), np.diff(new_borders))
    twin = old_borders[group] + np.arange(len(new.ids)) - new_borders[group]
    same = (np.diff(old_borders) == np.diff(new_borders))[group] & (old.ids[np.minimum(twin, len(old.ids) - 1)] == new.ids)
    kept = np.logical_and.reduceat(same, new_borders[:-1])[group]

    ends = new.ends()
    source = np.where(kept, twin, np.searchsorted(old.starts, ends - 1, side="right") - 1)
    loss_mask = np.where(kept, stream.loss_mask[source], _sampled(old, stream.loss_mask, new.starts, ends))
    total = np.add.reduceat(stream.logprobs.astype(np.float64), old_borders[:-1])
    shares = np.add.reduceat(loss_mask.astype(np.int64), new_borders[:-1])
    shared = (total / np.maximum(shares, 1)).astype(np.float32)[group]
    logprobs = np.where(kept, stream.logprobs[source], np.where(loss_mask, shared, np.float32(0)))
    rows = np.minimum(source[:-1], len(old.ids) - 2)
    spans = [
        VersionSpan(int(np.searchsorted(source, span.start)), int(np.searchsorted(source, span.stop)), span.version)
        for span in stream.versions
    ]
    return replace(
        stream,
        token_ids=_read_only(new.ids),
        loss_mask=_read_only(loss_mask),
        logprobs=_read_only(logprobs),
        routed_experts=_read_only(stream.routed_experts[rows]),
        versions=tuple(span for span in spans if span.start < span.stop),
        substituted_rows=tuple(np.flatnonzero(np.isin(rows, stream.substituted_rows)).tolist()),
    )


def _groups(old: EncodedText, new: EncodedText) -> tuple[Indices, Indices]:
    """[groups + 1] each: where every group's old and new ids begin, and the number of all."""
    common = np.intersect1d(old.starts, new.starts)
    common = np.union1d(common[common < len(old.text)], [0])
    return tuple(np.append(np.searchsorted(text.starts, common), len(text.ids)) for text in (old, new))  # type: ignore[return-value]


def _sampled(old: EncodedText, loss_mask: npt.NDArray[np.bool_], starts: Ids, ends: Ids) -> npt.NDArray[np.bool_]:
    """[n]: whether every old id that stands for one of the characters [start, end) was sampled."""
    first = np.searchsorted(old.starts, old.starts[np.searchsorted(old.starts, starts, side="right") - 1])
    last = np.searchsorted(old.starts, ends)
    counts = np.concatenate([[0], np.cumsum(loss_mask)])
    sampled: npt.NDArray[np.bool_] = counts[last] - counts[first] == last - first
    return sampled


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array

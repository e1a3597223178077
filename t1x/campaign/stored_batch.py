"""A rollout batch as nested state for a checkpoint: the streams of all samples one after the other, with their lengths.

Invariant: the batch that is read equals the one that was stored, to the bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.training.batch import Batch
from t1x.trajectory.records import Boundary, Trajectory, VersionSpan

STREAMS = ("token_ids", "loss_mask", "logprobs", "routed_experts")
"""Arrays of a trajectory, [N, …] or, of the experts, [N-1, …]."""

Ragged = dict[str, npt.NDArray[Any]]
"""`rows` of all samples, one after the other, and `lengths` [n]: how many are whose."""


def batch_tree(batch: Batch) -> dict[str, Any]:
    """The batch in arrays and plain values."""
    samples = batch.trajectories
    spans = [[(span.start, span.stop, span.version) for span in sample.versions] for sample in samples]
    codes = {boundary: code for code, boundary in enumerate(Boundary)}
    return {
        **{field.name: getattr(batch, field.name) for field in fields(Batch) if field.name != "trajectories"},
        "streams": {name: _ragged([getattr(sample, name) for sample in samples]) for name in STREAMS},
        "versions": _ragged([np.array(each, np.int64).reshape(-1, 3) for each in spans]),
        "boundaries": _ragged([np.array([codes[each] for each in sample.boundaries], np.uint8) for sample in samples]),
        "substituted": _ragged([np.array(sample.substituted_rows, np.int64) for sample in samples]),
        "boundary_names": [str(boundary) for boundary in Boundary],
        "temperatures": np.array([sample.temperature for sample in samples], np.float64),
    }


def batch_from_tree(tree: Mapping[str, Any]) -> Batch:
    """The batch that `batch_tree` made this of."""
    streams = {name: list(_samples(tree["streams"][name])) for name in STREAMS}
    names = tree["boundary_names"]
    rest = zip(
        *(_samples(tree[name]) for name in ("versions", "boundaries", "substituted")), tree["temperatures"].tolist(), strict=True
    )
    samples = [
        Trajectory(
            token_ids=streams["token_ids"][index],
            loss_mask=streams["loss_mask"][index],
            logprobs=streams["logprobs"][index],
            routed_experts=streams["routed_experts"][index],
            versions=tuple(VersionSpan(*span) for span in spans.tolist()),
            boundaries=tuple(Boundary(names[code]) for code in codes),
            temperature=temperature,
            substituted_rows=tuple(substituted.tolist()),
        )
        for index, (spans, codes, substituted, temperature) in enumerate(rest)
    ]
    others = {field.name: tree[field.name] for field in fields(Batch) if field.name != "trajectories"}
    return Batch(trajectories=samples, **others)


def _ragged(samples: Sequence[npt.NDArray[Any]]) -> Ragged:
    return {"rows": np.concatenate(samples), "lengths": np.array([len(sample) for sample in samples], np.int64)}


def _samples(stored: Ragged) -> Iterator[npt.NDArray[Any]]:
    for rows in np.split(stored["rows"], np.cumsum(stored["lengths"])[:-1]):
        rows.flags.writeable = False
        yield rows

"""The streams of one training sample while it grows.

Invariants:
- all streams grow by the same edit; nobody edits one alone;
- what stands is never rewritten, so a trajectory that was handed out stays what it was;
- routing rows are one fewer than ids.
"""

from dataclasses import replace

import numpy as np

from t1x.model.routing_layout import Experts, RoutingLayout
from t1x.trajectory.edit import Edit
from t1x.trajectory.prompt import GrowingArray, PromptBuffer
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan


class Chunk:
    """Grows turn by turn, by edits that were checked before."""

    def __init__(self, temperature: float, layout: RoutingLayout | None) -> None:
        self._ids = PromptBuffer()
        self._loss_mask = GrowingArray(np.bool_)
        self._logprobs = GrowingArray(np.float32)
        self._rows = GrowingArray(layout.dtype, (layout.layers, layout.k)) if layout else GrowingArray(np.uint8, (0, 0))
        self._versions: list[VersionSpan] = []
        self._boundaries: list[Boundary] = []
        self._substituted: list[int] = []
        self.temperature = temperature

    @property
    def rows(self) -> Experts:
        """[N-1, layers, k]"""
        return self._rows.view()

    def append(self, edit: Edit, turn: Turn, substitute: Experts | None, rows: Experts, *, opens_trial: bool) -> None:
        """A turn by its edit. `rows` are all that the streams lack, behind `substitute` [1, layers, k], a row of no capture."""
        if not opens_trial:
            self._boundaries.append(edit.boundary)
        context, done = turn.prompt_ids[edit.follow :], turn.completion
        start = len(self._ids) + len(context)
        self._ids.extend(context)
        self._ids.extend(done.ids)
        self._loss_mask.extend(np.zeros(len(context), np.bool_))
        self._loss_mask.extend(np.ones(len(done.ids), np.bool_))
        self._logprobs.extend(np.zeros(len(context), np.float32))
        self._logprobs.extend(done.logprobs)
        if substitute is not None:
            self._substituted.append(len(self._rows))
            self._rows.extend(substitute)
        self._rows.extend(rows)
        if len(done.ids):
            self._add_span(VersionSpan(start, len(self._ids), done.version))
        assert len(self._ids) == len(self._loss_mask) == len(self._logprobs) == len(self._rows) + 1

    def _add_span(self, span: VersionSpan) -> None:
        if self._versions and self._versions[-1].version == span.version:
            span = replace(span, start=self._versions.pop().start)
        self._versions.append(span)

    def trajectory(self) -> Trajectory:
        """The streams so far, read-only and without a copy."""
        return Trajectory(
            token_ids=self._ids.view(),
            loss_mask=self._loss_mask.view(),
            logprobs=self._logprobs.view(),
            routed_experts=self._rows.view(),
            versions=tuple(self._versions),
            boundaries=tuple(self._boundaries),
            temperature=self.temperature,
            substituted_rows=tuple(self._substituted),
        )

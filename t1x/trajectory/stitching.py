"""The token stitcher: every stream of a trajectory, grown turn by turn (report, sections 4.2 and 4.3).

Invariants:
- a refused turn leaves the streams as they were: everything is checked before anything is appended;
- all streams grow by the same offsets; stitched rows are N - 1;
- the row of a loss position comes from the turn that sampled it;
- what one turn costs doesn't depend on the turns before it, but for one vectorised comparison of its prompt.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.engine.protocol import Completion
from t1x.trajectory.prompt import GrowingArray, PromptBuffer
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan
from t1x.trajectory.stitcher import RoutingRecordError, StitchingError, TokenFidelityError

Rows = npt.NDArray[Any]


@dataclass(slots=True)
class _Chunk:
    """The streams of the trajectory that is being grown."""

    temperature: float
    layout: tuple[int, ...]
    """(layers, k)"""
    dtype: np.dtype[Any]
    boundaries: list[Boundary]
    ids: GrowingArray = field(default_factory=PromptBuffer)
    loss_mask: GrowingArray = field(default_factory=lambda: GrowingArray(np.bool_))
    logprobs: GrowingArray = field(default_factory=lambda: GrowingArray(np.float32))
    versions: list[VersionSpan] = field(default_factory=list)
    routing: GrowingArray = field(init=False)

    def __post_init__(self) -> None:
        self.routing = GrowingArray(self.dtype, self.layout)

    def append(self, context: npt.NDArray[np.int32], completion: Completion, rows: list[Rows]) -> None:
        """`context` is what stands between the stream and the completion; `rows` what the routing stream lacks."""
        start = len(self.ids) + len(context)
        self.ids.extend(context)
        self.ids.extend(completion.ids)
        self.loss_mask.extend(np.zeros(len(context), np.bool_))
        self.loss_mask.extend(np.ones(len(completion.ids), np.bool_))
        self.logprobs.extend(np.zeros(len(context), np.float32))
        self.logprobs.extend(completion.logprobs)
        for part in rows:
            self.routing.extend(part)
        if len(completion.ids):
            if self.versions and self.versions[-1].version == completion.version:
                start = self.versions.pop().start
            self.versions.append(VersionSpan(start, len(self.ids), completion.version))
        assert len(self.ids) == len(self.loss_mask) == len(self.logprobs) == len(self.routing) + 1

    def trajectory(self) -> Trajectory:
        return Trajectory(
            token_ids=self.ids.view(),
            loss_mask=self.loss_mask.view(),
            logprobs=self.logprobs.view(),
            routed_experts=self.routing.view(),
            versions=tuple(self.versions),
            boundaries=tuple(self.boundaries),
            temperature=self.temperature,
        )


class TokenTrialStitcher:
    """Stitches one trial. Boundaries are `EXACT` or an announced `RESTART`; anything else is a `TokenFidelityError`."""

    def __init__(self) -> None:
        self._finished: list[Trajectory] = []
        self._chunk: _Chunk | None = None
        self._turns = 0

    def add(self, turn: Turn) -> None:
        _check_turn(turn, self._turns)
        chunk, prompt = self._chunk, turn.prompt_ids
        if chunk is None:
            self._open(turn, [], _fresh_rows(turn, None))
        else:
            differs = _first_difference(chunk.ids.view(), prompt)
            if differs is None:
                if chunk.temperature != turn.temperature:
                    raise StitchingError(
                        f"turn {turn.index} was sampled at temperature {turn.temperature}, the stream at {chunk.temperature}"
                    )
                rows = _following_rows(turn, chunk)
                chunk.boundaries.append(Boundary.EXACT)
                chunk.append(prompt[len(chunk.ids) :], turn.completion, rows)
            elif turn.restarted:
                rows = _fresh_rows(turn, chunk)
                self._finished.append(chunk.trajectory())
                self._open(turn, [Boundary.RESTART], rows)
            else:
                raise _fidelity_error(turn, chunk.ids.view(), differs)
        self._turns += 1

    def finish(self) -> list[Trajectory]:
        return self._finished + ([self._chunk.trajectory()] if self._chunk else [])

    def _open(self, turn: Turn, boundaries: list[Boundary], rows: list[Rows]) -> None:
        routing = turn.completion.routing
        self._chunk = _Chunk(turn.temperature, routing.shape[1:], routing.dtype, boundaries)
        self._chunk.append(turn.prompt_ids, turn.completion, rows)


def _first_difference(stream: npt.NDArray[np.int32], prompt: npt.NDArray[np.int32]) -> int | None:
    """The first index at which `stream` isn't a prefix of `prompt` (Eq. 6); None where it is one."""
    n = min(len(stream), len(prompt))
    if np.array_equal(stream[:n], prompt[:n]):
        return None if len(stream) <= len(prompt) else n
    return int(np.argmax(stream[:n] != prompt[:n]))


def _fidelity_error(turn: Turn, stream: npt.NDArray[np.int32], at: int) -> TokenFidelityError:
    around = slice(max(0, at - 4), at + 4)
    return TokenFidelityError(
        f"turn {turn.index}: its prompt ({len(turn.prompt_ids)} ids) doesn't continue the stream ({len(stream)} ids). They first "
        f"differ at index {at}: from {around.start} on the stream has {stream[around].tolist()}, the prompt "
        f"{turn.prompt_ids[around].tolist()}; a harness that compacts or rewrites history announces it with `restarted`"
    )


def _check_turn(turn: Turn, index: int) -> None:
    """What holds for a turn whatever came before it."""
    done = turn.completion
    if turn.index != index:
        raise StitchingError(f"turn {turn.index} came where turn {index} was due")
    if not len(turn.prompt_ids):
        raise StitchingError(f"turn {turn.index} has an empty prompt")
    if done.logprobs.shape != done.ids.shape or not np.isfinite(done.logprobs).all():
        raise StitchingError(
            f"turn {turn.index}: {len(done.ids)} sampled ids need as many finite log-probabilities, got {done.logprobs.tolist()}"
        )
    if done.routing.ndim != 3:
        raise RoutingRecordError(f"turn {turn.index}: routing has the shape {done.routing.shape}, not [rows, layers, k]")
    due = len(turn.prompt_ids) + len(done.ids) - 1
    got = done.routing_start + len(done.routing)
    if done.routing_start < 0 or got != due:
        raise RoutingRecordError(
            f"turn {turn.index}: routing rows reach from position {done.routing_start} to {got}, prompt and completion have {due}"
        )
    for shift in range(1, done.routing.shape[2]):
        repeated = done.routing[..., shift:] == done.routing[..., :-shift]
        if repeated.any():
            row, layer = np.argwhere(repeated)[0][:2]
            raise RoutingRecordError(
                f"turn {turn.index}: position {done.routing_start + row}, layer {layer}: experts "
                f"{done.routing[row, layer].tolist()} aren't distinct"
            )


def _check_layout(turn: Turn, chunk: _Chunk) -> None:
    routing = turn.completion.routing
    if routing.shape[1:] != chunk.layout or routing.dtype != chunk.dtype:
        raise RoutingRecordError(
            f"turn {turn.index}: routing of [layers, k] = {routing.shape[1:]} {routing.dtype} follows {chunk.layout} {chunk.dtype}"
        )


def _following_rows(turn: Turn, chunk: _Chunk) -> list[Rows]:
    """The rows that the stream lacks. Those it has win over recomputed ones: theirs is the turn that sampled the position."""
    _check_layout(turn, chunk)
    routing, start, have = turn.completion.routing, turn.completion.routing_start, len(chunk.routing)
    if start <= have:
        return [routing[have - start :]]
    raise RoutingRecordError(f"turn {turn.index}: routing rows begin at position {start}, but the stream has only {have} of them")


def _fresh_rows(turn: Turn, before: _Chunk | None) -> list[Rows]:
    """All rows of a new chunk; those served from the session's cache come from the chunk before, where its ids are the same."""
    routing, start = turn.completion.routing, turn.completion.routing_start
    if not start:
        return [routing]
    if before is None or not np.array_equal(before.ids.view()[:start], turn.prompt_ids[:start]):
        raise RoutingRecordError(
            f"turn {turn.index}: routing rows begin at position {start}, and no earlier turn has the rows before it"
        )
    _check_layout(turn, before)
    return [before.routing.view()[:start], routing]

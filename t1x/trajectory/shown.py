"""A stored trial as a reader looks at it: turn by turn, token by token.

What is shown of a trajectory is its streams, that is what training sees. A trial without any, and one whose streams can't be
divided among its turns, is shown by what its turns captured.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.text.prefix import common_ids
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.audit_alignment import Span, loss_spans, turns_of
from t1x.trajectory.records import Boundary, Trajectory, Turn
from t1x.trajectory.shown_tokens import Tokens, tokens_of
from t1x.trajectory.stored import StoredTrial


class Chosen(NamedTuple):
    """Experts that some weights choose."""

    weights: str
    """What a reader calls them."""
    note: str
    """Why they aren't those that sampled the trial; empty where they are."""
    experts: Sequence[Experts]
    """Of each trajectory [N-1, layers, k], in any order."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn."""

    turn: Turn
    boundary: Boundary | None
    """How its prompt continues the turn before; None for the trial's first, and where that isn't known."""
    context: Tokens
    """What its prompt adds to the turn before."""
    sampled: Tokens
    recaptured: int
    """Routing rows that this turn captured although the stream had them already."""
    equal: int
    """Those among them that equal the stream's."""
    same_text: bool
    """Whether what the stream has stands for text that the turn sampled, or for a part of it: it may be other ids all the same."""

    @property
    def replaced(self) -> bool:
        """Whether the stream has other ids than the turn sampled."""
        return not np.array_equal(self.sampled.ids, self.turn.completion.ids)


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial; every turn once."""

    trial: StoredTrial
    turns: tuple[ShownTurn, ...]
    divided: bool
    """Whether its streams are what is shown; otherwise it's the turns' captures."""
    chosen: Chosen | None = None
    """What agreement is with; None where it's with what later turns captured."""


def shown(trial: StoredTrial, tokenizer: ChatTokenizer, chosen: Chosen | None = None) -> ShownTrial:
    """The trial for a reader. Agreement compares the stream's experts with those that later turns captured for the same positions,
    slot by slot, or, where they are given, with `chosen`."""
    divided = _divided(trial)
    if divided is None:
        return ShownTrial(trial, tuple(_captured(trial.turns, tokenizer)), False, chosen)
    turns = [
        each
        for index, (stream, own, spans) in enumerate(divided)
        for each in _streamed(stream, own, spans, index == 0, tokenizer, None if chosen is None else chosen.experts[index])
    ]
    return ShownTrial(trial, tuple(turns), True, chosen)


def _divided(trial: StoredTrial) -> list[tuple[Trajectory, Sequence[Turn], list[Span]]] | None:
    """Each trajectory with its turns and where in it these sampled; None where that can't be told."""
    streams, parts = trial.trajectories, []
    if not streams or 1 + sum(len(stream.boundaries) for stream in streams) != len(trial.turns):
        return None
    for stream, own in zip(streams, turns_of(trial.turns, streams), strict=False):
        spans = _spans(stream.loss_mask, own)
        if spans is None:
            return None
        parts.append((stream, own, spans))
    return parts


def _spans(mask: npt.NDArray[np.bool_], turns: Sequence[Turn]) -> list[Span] | None:
    """Where each turn's own tokens are; one that sampled nothing stands behind the turn before it, or at the end."""
    found = loss_spans(mask, [len(turn.completion.ids) for turn in turns])
    if found is None:
        return None
    spans: list[Span] = []
    for number, span in enumerate(found):
        nothing = len(mask) if number == len(found) - 1 else spans[-1][1] if spans else 0
        spans.append(span or (nothing, nothing))
    return spans if not spans or spans[-1][1] == len(mask) else None


def _streamed(
    stream: Trajectory, turns: Sequence[Turn], spans: Sequence[Span], first: bool, tokenizer: ChatTokenizer, chosen: Experts | None
) -> Iterator[ShownTurn]:
    n, experts = len(stream.token_ids), stream.routed_experts
    compared, same = np.zeros(n), np.zeros(n)
    counts = []
    end = 0
    for turn, (start, stop) in zip(turns, spans, strict=True):
        begins, again = turn.completion.routing_start, _again(stream, turn, start, end)
        at = slice(begins, begins + len(again))
        equal = again == experts[at]
        if chosen is None:
            compared[at] += experts.shape[1] * experts.shape[2]
            same[at] += equal.sum(axis=(1, 2))
        counts.append((len(again), int(equal.all(axis=(1, 2)).sum())))
        end = stop
    if chosen is not None:
        compared[:-1], same[:-1] = experts.shape[1] * experts.shape[2], _shared(experts, chosen)
    substituted = np.zeros(n, np.bool_)
    substituted[list(stream.substituted_rows)] = True
    boundaries = (None, *stream.boundaries) if first else stream.boundaries
    placeholder, end = np.zeros(n, np.bool_), 0
    for turn, boundary, (_, stop) in zip(turns, boundaries, spans, strict=True):
        if boundary is not Boundary.RESTART:
            placeholder[end : end + turn.placeholder_tokens] = True
        end = stop
    tokens = tokens_of(
        stream.token_ids,
        tokenizer,
        loss=stream.loss_mask,
        logprobs=stream.logprobs,
        agreement=np.divide(same, compared, out=np.full(n, np.nan), where=compared > 0),
        substituted=substituted,
        experts=experts,
        placeholder=placeholder,
    )
    end = 0
    for turn, boundary, (start, stop), rows in zip(turns, boundaries, spans, counts, strict=True):
        yield ShownTurn(
            turn, boundary, tokens.part(end, start), (own := tokens.part(start, stop)), *rows, _same_text(own, turn, tokenizer)
        )
        end = stop


def _same_text(own: Tokens, turn: Turn, tokenizer: ChatTokenizer) -> bool:
    """Ids that were encoded anew begin and end within what was sampled, since one that holds context too carries no loss."""
    ids = turn.completion.ids
    return np.array_equal(own.ids, ids) or tokenizer.decode_spans(own.ids).text in tokenizer.decode_spans(ids).text


def _again(stream: Trajectory, turn: Turn, start: int, end: int) -> Experts:
    """Rows of a turn whose own tokens begin at `start`, for positions below `end`, up to where the turns before it came: those that
    earlier turns captured. Only as far as the engine consumed what the stream has."""
    known = min(common_ids(stream.token_ids[:start], turn.prompt_ids), end - 1) if stream.routed_experts.size else 0
    return turn.completion.routing[: max(0, known - turn.completion.routing_start)]


def _shared(one: Experts, other: Experts) -> npt.NDArray[np.float64]:
    """[rows]: how many of the experts of one are among those of the other, layer by layer."""
    shared = np.zeros(len(one))
    for layer in range(one.shape[1]):
        shared += (one[:, layer, :, None] == other[:, layer, None, :]).any(axis=2).sum(axis=1)
    return shared


def _captured(turns: Sequence[Turn], tokenizer: ChatTokenizer) -> Iterator[ShownTurn]:
    before = np.array([], np.int32)
    for turn in turns:
        done = turn.completion
        at = common_ids(before, turn.prompt_ids)
        ids, m = np.concatenate([turn.prompt_ids[at:], done.ids]), len(turn.prompt_ids) - at
        nowhere = np.zeros(len(ids), np.bool_)
        tokens = tokens_of(
            ids,
            tokenizer,
            loss=nowhere,
            logprobs=np.concatenate([np.zeros(m, np.float32), done.logprobs]),
            agreement=np.full(len(ids), np.nan),
            substituted=nowhere,
            experts=done.routing[at - done.routing_start :] if at >= done.routing_start else done.routing[:0],
            placeholder=np.arange(len(ids)) < (turn.placeholder_tokens if at == len(before) else 0),
        )
        yield ShownTurn(turn, None, tokens.part(0, m), tokens.part(m, len(ids)), 0, 0, True)
        before = np.concatenate([turn.prompt_ids, done.ids])

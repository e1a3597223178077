"""A stored trial as a reader looks at it: turn by turn, token by token.

What is shown of a trajectory is its streams, that is what training sees. A trial without any, and one whose streams can't be
divided among its turns, is shown by what its turns captured.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.audit_alignment import Span, loss_spans, turns_of
from t1x.trajectory.prefix import common_prefix
from t1x.trajectory.records import Boundary, Trajectory, Turn
from t1x.trajectory.stored import StoredTrial


@dataclass(frozen=True, slots=True)
class Tokens:
    """Some neighbouring tokens; arrays are [n]."""

    ids: npt.NDArray[np.int32]
    texts: Sequence[str]
    """Of an id that continues a character the empty one: the last id of a character has it."""
    loss: npt.NDArray[np.bool_]
    logprobs: npt.NDArray[np.float32]
    """The sampler's; 0 for context."""
    agreement: npt.NDArray[np.float64]
    """Share of the experts of this position that other choices of experts have too; NaN where there is none."""
    substituted: npt.NDArray[np.bool_]
    """Whether this position's experts are those of the one before (Eq. 14)."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def mean_logprob(self) -> float:
        """Over all of them, NaN where there is none."""
        return float(self.logprobs.mean(dtype=np.float64)) if len(self) else float("nan")


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


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial; every turn once."""

    trial: StoredTrial
    turns: tuple[ShownTurn, ...]
    divided: bool
    """Whether its streams are what is shown; otherwise it's the turns' captures."""
    chosen: bool = False
    """Whether agreement is that with experts that were given."""


def shown(trial: StoredTrial, tokenizer: ChatTokenizer, chosen: Sequence[Experts] | None = None) -> ShownTrial:
    """The trial for a reader. Agreement compares the stream's experts with those that later turns captured for the same positions,
    slot by slot, or, where they are given, with `chosen`: of each trajectory [N-1, layers, k], in any order."""
    divided = _divided(trial)
    if divided is None:
        return ShownTrial(trial, tuple(_captured(trial.turns, tokenizer)), False)
    turns = [
        each
        for index, (stream, own, spans) in enumerate(divided)
        for each in _streamed(stream, own, spans, index == 0, tokenizer, None if chosen is None else chosen[index])
    ]
    return ShownTrial(trial, tuple(turns), True, chosen is not None)


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
    tokens = Tokens(
        ids=stream.token_ids,
        texts=_texts(stream.token_ids, tokenizer),
        loss=stream.loss_mask,
        logprobs=stream.logprobs,
        agreement=np.divide(same, compared, out=np.full(n, np.nan), where=compared > 0),
        substituted=substituted,
    )
    boundaries = (None, *stream.boundaries) if first else stream.boundaries
    end = 0
    for turn, boundary, (start, stop), (recaptured_rows, equal_rows) in zip(turns, boundaries, spans, counts, strict=True):
        yield ShownTurn(turn, boundary, _part(tokens, end, start), _part(tokens, start, stop), recaptured_rows, equal_rows)
        end = stop


def _again(stream: Trajectory, turn: Turn, start: int, end: int) -> Experts:
    """Rows of a turn whose own tokens begin at `start`, for positions below `end`, up to where the turns before it came: those that
    earlier turns captured. Only as far as the engine consumed what the stream has."""
    known = min(common_prefix(stream.token_ids[:start], turn.prompt_ids), end - 1) if stream.routed_experts.size else 0
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
        context = turn.prompt_ids[common_prefix(before, turn.prompt_ids) :]
        nothing = np.zeros(len(context), np.float32)
        yield ShownTurn(turn, None, _plain(context, nothing, tokenizer), _plain(done.ids, done.logprobs, tokenizer), 0, 0)
        before = np.concatenate([turn.prompt_ids, done.ids])


def _plain(ids: npt.NDArray[np.int32], logprobs: npt.NDArray[np.float32], tokenizer: ChatTokenizer) -> Tokens:
    nowhere = np.zeros(len(ids), np.bool_)
    return Tokens(ids, _texts(ids, tokenizer), nowhere, logprobs, np.full(len(ids), np.nan), nowhere)


def _texts(ids: npt.NDArray[np.int32], tokenizer: ChatTokenizer) -> list[str]:
    spans = tokenizer.decode_spans(ids)
    return [spans.text[start:stop] for start, stop in pairwise([*spans.starts.tolist(), len(spans.text)])]


def _part(tokens: Tokens, start: int, stop: int) -> Tokens:
    at = slice(start, stop)
    return Tokens(
        tokens.ids[at], tokens.texts[at], tokens.loss[at], tokens.logprobs[at], tokens.agreement[at], tokens.substituted[at]
    )

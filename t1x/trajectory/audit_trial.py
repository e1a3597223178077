"""The audit of one trial, stream by stream and turn by turn."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from t1x.text.prefix import common_ids
from t1x.trajectory.audit_alignment import (
    Span,
    aligned,
    first_difference,
    lengths_agree,
    loss_spans,
    rows_without_capture,
    turn_at,
    turns_of,
    versions_of,
)
from t1x.trajectory.audit_detail import detail, engine_ids, rows_detail, values
from t1x.trajectory.audit_finding import AFTER, BEFORE, Finding, Kind, gathered, worst
from t1x.trajectory.audit_labels import label_of, wrong_labels
from t1x.trajectory.audit_places import follows, places
from t1x.trajectory.audit_record import Audit
from t1x.trajectory.audit_rows import rows_of_loss_positions, rows_of_tokens
from t1x.trajectory.audit_session import AuditedSession
from t1x.trajectory.records import Boundary, Trajectory, Turn


class TrialAudit:
    """Walks once through a trial; `found` is its audit."""

    def __init__(self, turns: Sequence[Turn], trajectories: Sequence[Trajectory], trial: str, droppable: int | None) -> None:
        self._trial, self._droppable = trial, droppable
        self._counts: Counter[str] = Counter()
        self._boundaries: Counter[Boundary] = Counter()
        self._findings: list[Finding] = []
        session = AuditedSession()
        *parts, left = turns_of(turns, trajectories)
        before: Turn | None = None
        for index, (own, stream) in enumerate(zip(parts, trajectories, strict=True)):
            spans = self._spans(own, stream)
            self._audit_labels(own, before, stream, [None] * len(own) if spans is None else follows(own, spans, stream))
            self._audit_stream(own, stream, spans, session, first=index == 0)
            before = own[-1] if own else before
        extra = sum(self._boundaries.values()) - max(0, len(turns) - 1)
        if extra > 0:
            self._label(Kind.BOUNDARY, turns[-1] if turns else None, f"{extra} boundaries more than one a turn after the first")
        for turn in left:
            self._missing(turn, None, 0, len(turn.prompt_ids), len(turn.completion.ids))
            if trajectories and not len(turn.completion.ids):
                self._label(Kind.BOUNDARY, turn, "no stream has a boundary for this turn")

    def found(self) -> Audit:
        """Counts and the worst findings."""
        return Audit(**self._counts, boundaries=self._boundaries, findings=worst(gathered(self._findings)))

    def _spans(self, turns: Sequence[Turn], stream: Trajectory) -> list[Span | None] | None:
        """What each turn sampled; None where nobody can tell."""
        sampled = [len(turn.completion.ids) for turn in turns]
        return loss_spans(stream.loss_mask, sampled) if lengths_agree(stream) else None

    def _audit_labels(self, turns: Sequence[Turn], before: Turn | None, stream: Trajectory, at: Sequence[int | None]) -> None:
        self._boundaries.update(stream.boundaries)
        for kind, turn, said in wrong_labels(turns, before, stream, at, self._droppable):
            self._label(kind, turn, said)

    def _label(self, kind: Kind, turn: Turn | None, said: str) -> None:
        self._count(wrong_labels=1)
        self._report(kind, turn, None, 0, 0, 1, said)

    def _audit_stream(
        self, turns: Sequence[Turn], stream: Trajectory, spans: list[Span | None] | None, session: AuditedSession, *, first: bool
    ) -> None:
        n = len(stream.token_ids)
        self._count(positions=n, substituted_rows=len(stream.substituted_rows))
        self._count(placeholder_tokens=sum(turn.placeholder_tokens for turn in turns))
        if spans is None:
            sampled = sum(len(turn.completion.ids) for turn in turns)
            self._undivided(turns, stream, int(np.count_nonzero(stream.loss_mask)), sampled)
            return
        labels = [label_of(number, stream, first=first) for number in range(len(turns))]
        spans = places(turns, labels, spans, n)
        self._loose_logprobs(turns, stream, spans)
        self._substitutions(turns, stream, spans, labels)
        versions = versions_of(stream)
        behind, placed = 0, True  # where the turn before ended in the stream, and whether that is known
        for turn, span in zip(turns, spans, strict=True):
            again = session.follow(turn)
            self._count(recomputed_rows=again.recomputed, recomputed_differences=again.differing)
            if again.served_differently:
                at = behind if span is None else span[0]
                self._report(Kind.CACHED, turn, stream, at, 0, again.served_differently, again.detail)
                self._count(cached_differences=again.served_differently)
            if span is None:
                placed = False
                continue
            self._audit_own(turn, stream, span, versions)
            self._audit_context(turn, stream, span, behind, session, placed)
            behind, placed = span[1], True

    def _undivided(self, turns: Sequence[Turn], stream: Trajectory, loss: int, sampled: int) -> None:
        """Nobody can tell whose loss positions are whose, so that none of them is certified."""
        count = max(loss, sampled)
        self._count(context_differences=count)
        turn, at = first_difference(turns, stream) if turns else (None, 0)
        said = f"{loss} loss positions for {sampled} sampled ids, and nothing tells whose they are"
        self._missing(turn, stream, at, at, count, said)

    def _audit_own(self, turn: Turn, stream: Trajectory, span: Span, versions: npt.NDArray[np.int64]) -> None:
        """What the turn sampled against the loss positions that hold it."""
        start, stop = span
        done = turn.completion
        positions, offsets = aligned(stream.token_ids[start:stop], done.ids)
        self._count(loss_tokens=len(offsets), retokenized=stop - start - len(offsets))
        missing = max(stop - start, len(done.ids)) - len(offsets)
        if missing:
            at = next((i for i, (p, o) in enumerate(zip(positions, offsets, strict=True)) if p != i or o != i), len(offsets))
            self._missing(turn, stream, start + at, len(turn.prompt_ids) + at, missing)
        at_stream, wrong = start + positions, np.zeros(len(offsets), np.bool_)
        first = len(turn.prompt_ids)
        checks = (
            (Kind.TOKEN, stream.token_ids[at_stream] != done.ids[offsets]),
            (Kind.LOGPROB, stream.logprobs[at_stream] != done.logprobs[offsets]),
            (Kind.VERSION, versions[at_stream] != done.version),
            (Kind.ROUTING, rows_of_loss_positions(stream.routed_experts, at_stream, turn, offsets)),
        )
        for kind, differs in checks:
            if differs.any():
                at = int(differs.argmax())
                place, offset = int(at_stream[at]), int(offsets[at])
                said = detail(kind, stream, place, turn, offset, versions)
                self._report(kind, turn, stream, place, first + offset, int(np.count_nonzero(differs)), said)
                wrong |= differs
        self._count(own_turn_violations=int(np.count_nonzero(wrong)), retokenized=int(np.count_nonzero(checks[0][1])))

    def _audit_context(
        self, turn: Turn, stream: Trajectory, span: Span, behind: int, session: AuditedSession, placed: bool
    ) -> None:
        """What stands before the turn's own tokens, against what the engine consumed. Of the whole prefix ids are compared; of what
        came with this turn, that is from `behind` on, ids and routing rows are audited too."""
        start, stop = span
        prompt, done = turn.prompt_ids, turn.completion
        at = common_ids(stream.token_ids[:start], prompt)
        if at == start == len(prompt):  # behind its own wrong token, a loss position has another prefix too
            self._count(context_differences=max(0, stop - start - common_ids(stream.token_ids[start:stop], done.ids) - 1))
        elif stop > start:
            self._count(context_differences=stop - start)
            self._report(Kind.CONTEXT, turn, stream, at, at, stop - start)
        if not placed:  # a turn before it sampled nothing, so nobody can say where its prompt ends in the stream
            return
        shift = len(prompt) - start
        first = max(behind, -shift)
        other = stream.token_ids[first:start] != prompt[first + shift :]
        self._count(retokenized=int(np.count_nonzero(other)) + first - behind)
        self._audit_rows(turn, stream, start, behind, session)

    def _audit_rows(self, turn: Turn, stream: Trajectory, start: int, behind: int, session: AuditedSession) -> None:
        """Rows from the last position of the turn before on, up to the one that predicts this turn's first token."""
        prompt = turn.prompt_ids
        shift = len(prompt) - start
        begin = max(behind - 1, 0)
        first = max(begin, -shift)
        if begin >= start - 1 or not stream.routed_experts.size:
            return
        captured = session.rows(first + shift, start - 1 + shift)
        wrong = np.ones(start - 1 - begin, np.bool_)  # before `first` there are more positions than the prompt has
        wrong[first - begin :] = rows_of_tokens(stream, slice(first, start - 1), captured, prompt[first + shift : len(prompt) - 1])
        declared = np.array(stream.substituted_rows, np.int64)
        declared = declared[(declared >= begin) & (declared < start - 1)]
        wrong[declared - begin] = False
        if wrong.any():
            at = begin + int(wrong.argmax())
            captured_row = None if captured is None or at < first else captured[at - first]
            self._count(misplaced_rows=int(np.count_nonzero(wrong)))
            said = rows_detail(stream.routed_experts[at], captured_row)
            self._report(Kind.ROW, turn, stream, at, at + shift, int(np.count_nonzero(wrong)), said)

    def _loose_logprobs(self, turns: Sequence[Turn], stream: Trajectory, spans: Sequence[Span | None]) -> None:
        loose = (stream.logprobs != 0) & ~stream.loss_mask
        if loose.any():
            at = int(loose.argmax())
            turn = turn_at(turns, spans, at)
            self._count(own_turn_violations=int(np.count_nonzero(loose)))
            said = f"context has {stream.logprobs[at]:.6g}"
            self._report(Kind.LOGPROB, turn, stream, at, at, int(np.count_nonzero(loose)), said)

    def _substitutions(
        self, turns: Sequence[Turn], stream: Trajectory, spans: Sequence[Span | None], labels: Sequence[Boundary | None]
    ) -> None:
        """Eq. 14 for every row that is said to be substituted."""
        rows, lacking = stream.routed_experts, rows_without_capture(spans, labels)
        for row, times in Counter(stream.substituted_rows).items():
            if not 0 <= row < len(rows):
                why = f"isn't one of the {len(rows)} rows"
            elif times > 1:
                why = f"is named {times} times"
            elif stream.loss_mask[row + 1]:
                why = "predicts a loss token"
            elif row == 0 or not np.array_equal(rows[row], rows[row - 1]):
                why = "doesn't repeat the row before it"
            elif lacking is not None and row not in lacking:
                why = "isn't the last of a turn that isn't continued exactly"
            else:
                continue
            self._count(misplaced_rows=1)
            self._report(Kind.ROW, turn_at(turns, spans, row), stream, row, row, 1, f"a substituted row {why}")

    def _count(self, **counts: int) -> None:
        self._counts.update(counts)

    def _missing(self, turn: Turn | None, stream: Trajectory | None, at: int, engine_at: int, count: int, said: str = "") -> None:
        """Tokens that have no counterpart: `at` in the stream, if there is one, and `engine_at` in T_i."""
        self._count(loss_tokens=count, own_turn_violations=count)
        if count:
            self._report(Kind.MISSING, turn, stream, at, engine_at, count, said)

    def _report(
        self, kind: Kind, turn: Turn | None, stream: Trajectory | None, at: int, engine_at: int, count: int, said: str = ""
    ) -> None:
        ids = () if stream is None else tuple(stream.token_ids[max(0, at - BEFORE) : at + AFTER].tolist())
        engine, number = (engine_ids(turn, engine_at), turn.index) if turn else ((), -1)
        sides = values(kind, stream, at, turn, engine_at) if stream is not None and turn else ((), ())
        self._findings.append(Finding(kind, self._trial, number, at, count, ids, engine, engine_at, said, 0, *sides))

"""The token stitcher: every stream of a trajectory, grown turn by turn (report, sections 4.2 and 4.3).

Invariants:
- a refused turn leaves the streams as they were: everything is checked before anything is appended;
- what is compared with a prompt, and served to it from the session's cache, is what the engine saw in the turn before, not the
  stream, which differs from it behind a boundary that isn't exact;
- the row of a loss position comes from the turn that sampled it;
- no stop token stands twice in a row: not either where turns that added nothing stand between it and a prompt that repeats it;
- what one turn costs doesn't depend on the turns before it, but for comparisons of its prompt as a whole.
"""

from dataclasses import replace

import numpy as np

from t1x.model.routing_layout import Experts, RoutingLayout
from t1x.text.tokenizer import ChatTokenizer, Ids
from t1x.trajectory.boundary import exact, inexact, shared_prefix
from t1x.trajectory.boundary_ids import repetition, trailing
from t1x.trajectory.captures import CapturedRows
from t1x.trajectory.chunk import Chunk
from t1x.trajectory.edit import Bounds, Edit
from t1x.trajectory.records import Boundary, Trajectory, Turn
from t1x.trajectory.routing import check_record, substitute
from t1x.trajectory.stitcher import RoutingRecordError, StitchingError, TokenFidelityError
from t1x.trajectory.turn_check import check_turn


class TokenTrialStitcher:
    """Stitches one trial."""

    def __init__(self, tokenizer: ChatTokenizer, layout: RoutingLayout | None, bounds: Bounds | None) -> None:
        """Without `bounds` every boundary must be exact."""
        self._tokenizer, self._layout, self._bounds = tokenizer, layout, bounds
        self._finished: list[Trajectory] = []
        self._chunk: Chunk | None = None
        self._before: Turn | None = None
        self._captures = CapturedRows()
        self._aligned = True
        """Whether the stream's last id is the engine's. It isn't behind a prompt that lacks it and a turn that added nothing."""
        self._lacking: Ids = np.empty(0, np.int32)
        """Stop and blank ids at the stream's end that the engine didn't see again: the prompts since then left them out, and
        added nothing."""
        self._turns = 0

    def add(self, turn: Turn) -> None:
        check_turn(turn, self._turns, self._tokenizer.vocab_size)
        edit = self._once(self._related(turn), turn.prompt_ids)
        self._check_routing(turn, edit)
        put_in = self._put_in(turn, edit)

        self._captures.resume(turn.completion.routing_start, turn.completion.routing)
        if self._chunk is None or edit.boundary is Boundary.RESTART:
            if self._chunk is not None:
                self._finished.append(self._chunk.trajectory())
            self._chunk = Chunk(turn.temperature, self._layout)
        self._aligned = edit.captured or _adds(turn, edit)
        self._lacking = self._left_out(turn, edit)
        self._chunk.append(edit, turn, put_in, self._captures[edit.follow - edit.captured :], opens_trial=self._before is None)
        self._before = turn
        self._turns += 1

    def finish(self) -> list[Trajectory]:
        return self._finished + ([self._chunk.trajectory()] if self._chunk else [])

    def _related(self, turn: Turn) -> Edit:
        """The strongest relation that holds. An announced turn is exact or a restart: between what was compacted or rewritten and
        what was before, a weaker relation holds by coincidence."""
        before, restart = self._before, Edit(Boundary.RESTART, follow=0, captured=False)
        if before is None:
            return restart
        if (edit := exact(before, turn.prompt_ids)) is not None:
            return edit if self._aligned else replace(edit, captured=False)
        if self._bounds is None:
            raise _fidelity_error(before, turn, self._tokenizer, "ExactStitcher takes no other turn, not even an announced restart")
        if turn.restarted:
            return restart
        found = inexact(before, turn, self._tokenizer, self._bounds)
        if isinstance(found, Edit):
            return found if self._aligned else replace(found, captured=False)
        why = f"{found}. A harness that compacts or rewrites history announces it with `restarted`"
        if turn.rendered is not None:
            why += f". What is known of the chat template: {' '.join(self._tokenizer.quirks.describe().splitlines())}"
        raise _fidelity_error(before, turn, self._tokenizer, why)

    def _once(self, edit: Edit, prompt: Ids) -> Edit:
        """The edit without ids that the stream ends with already, though the engine's last turn didn't."""
        again = 0 if edit.boundary is Boundary.RESTART else repetition(self._lacking, prompt[edit.follow :], self._tokenizer)
        return replace(edit, follow=edit.follow + again, captured=True, skipped=again) if again else edit

    def _left_out(self, turn: Turn, edit: Edit) -> Ids:
        """What a later prompt may repeat that the stream ends with, behind this edit."""
        if self._before is None or edit.skipped or edit.boundary is Boundary.RESTART or _adds(turn, edit):
            return self._lacking[:0]
        answer = self._before.completion.ids
        if not len(answer):
            return self._lacking
        stops = edit.boundary is Boundary.RETOKENIZED
        return answer[len(answer) - (trailing(answer, self._tokenizer.stop_ids) if stops else edit.dropped) :]

    def _put_in(self, turn: Turn, edit: Edit) -> Experts | None:
        """The row for the stream's last id where no capture has it."""
        chunk = self._chunk
        if chunk is None or edit.boundary is Boundary.RESTART:
            return None
        if chunk.temperature != turn.temperature:
            raise StitchingError(
                f"turn {turn.index} was sampled at temperature {turn.temperature}, the stream at {chunk.temperature}"
            )
        if edit.captured or not _adds(turn, edit):
            return None
        predicts_loss = edit.follow == len(turn.prompt_ids)
        if self._layout is None and predicts_loss:
            why = "Nothing stands behind what it repeats, so that what was sampled would follow ids that it lacks"
            assert self._before is not None
            raise _fidelity_error(self._before, turn, self._tokenizer, why)
        try:
            return substitute(chunk.rows, predicts_loss)
        except RoutingRecordError as error:
            raise RoutingRecordError(f"turn {turn.index}: {error}") from error

    def _check_routing(self, turn: Turn, edit: Edit) -> None:
        """The turn's own capture, and the rows that it leaves to the session's cache."""
        start, cached = turn.completion.routing_start, turn.completion.cached_tokens
        shared = 0
        if self._before is not None and (start > 0 or cached > 0):
            ids = edit.follow - edit.skipped if edit.boundary is Boundary.EXACT else shared_prefix(self._before, turn.prompt_ids)
            shared = min(ids, len(self._captures))
        check_record(turn, self._layout, self._captures[start : min(cached, shared)] if 0 <= start < min(cached, shared) else None)
        if start > shared:
            raise RoutingRecordError(
                f"turn {turn.index}: its routing rows begin at position {start}, and no earlier turn captured those from {shared} "
                f"on for these ids"
            )


def _adds(turn: Turn, edit: Edit) -> bool:
    """Whether the streams get longer."""
    return edit.follow < len(turn.prompt_ids) or len(turn.completion.ids) > 0


def _fidelity_error(before: Turn, turn: Turn, tokenizer: ChatTokenizer, why: str) -> TokenFidelityError:
    seen, prompt = np.concatenate([before.prompt_ids, before.completion.ids]), turn.prompt_ids
    at = shared_prefix(before, prompt)
    first, last = max(0, at - 4), at + 4

    def shown(ids: Ids) -> str:
        part = ids[first:last]
        return f"{part.tolist()} {tokenizer.decode_spans(part).text!r}"

    return TokenFidelityError(
        f"turn {turn.index}: its prompt ({len(prompt)} ids) doesn't continue turn {before.index} ({len(seen)} ids). They first "
        f"differ at index {at}: from {first} on turn {before.index} has {shown(seen)}, the prompt {shown(prompt)}. {why}"
    )

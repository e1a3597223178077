"""How the turns of a trial become trajectories."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from pydantic import Field

from t1x.config import Component
from t1x.model.routing_layout import RoutingLayout
from t1x.text.tokenizer import ChatTokenizer
from t1x.trajectory.records import Trajectory, Turn


class StitchingError(ValueError):
    """The turns can't become a training sample: harness, stitcher, tokenizer or engine isn't what the others take it for. The
    rollout aborts: dropping the sample would select the batch by it."""


class TokenFidelityError(StitchingError):
    """A turn's prompt doesn't continue the stream, and the harness announced no restart."""


class RoutingRecordError(StitchingError):
    """A routing record is absent, short, long or not one of k distinct experts."""


@runtime_checkable
class TrialStitcher(Protocol):
    """Stitches one trial; lives as long as it."""

    def add(self, turn: Turn) -> None:
        """Continues the stream by one turn. Raises `StitchingError`, and then leaves the stream as it was."""

    def finish(self) -> list[Trajectory]:
        """The trial's trajectories, in order: one, and one more for every restart. A trajectory's `boundaries` begin with how its
        first turn continues the one before, so that together they hold one boundary a turn after the trial's first."""


class Stitcher(Component):
    """How the turns of a trial become trajectories. One of your own overrides `build`, and sets the class attribute `faithful` (no
    field, so no Gin file can) to False where it changes what was sampled."""

    faithful: ClassVar[bool] = True
    """Whether every loss token is what its turn sampled; a campaign stops where the auditor finds otherwise."""
    exact: ClassVar[bool] = False
    """Whether it needs a harness that is `exact`."""

    @property
    def droppable(self) -> int | None:
        """How many ids at the end of an answer an edge of its may drop, which the auditor needs to tell an edge from the same text
        in other ids; None where that isn't known."""
        return None

    def build(self, tokenizer: ChatTokenizer, layout: RoutingLayout | None) -> TrialStitcher:
        """A worker for one trial. `layout` is what every turn's routing record must be; None where turns have none."""
        raise NotImplementedError

    def stitch(self, trial: str, turns: Sequence[Turn], tokenizer: ChatTokenizer, layout: RoutingLayout | None) -> list[Trajectory]:
        """The trajectories of a whole trial. Raises `StitchingError` that names this class and the trial, also where what comes
        out aren't trajectories whose streams agree in type and length."""
        try:
            worker = self.build(tokenizer, layout)
            if not isinstance(worker, TrialStitcher):
                raise StitchingError(f"{type(self).__name__}.build returned {_told(worker)}; it must return a TrialStitcher")
            for turn in turns:
                worker.add(turn)
            return _checked(worker.finish(), f"{type(worker).__name__}.finish")
        except StitchingError as error:
            error.args = (f"{type(self).__name__} can't stitch trial {trial}: {error}",)
            raise


def _checked(made: object, by: str) -> list[Trajectory]:
    """What `by` made of a trial; storage, auditor and training rely on it. Raises `StitchingError`."""
    from t1x.trajectory.storage_check import check_stream

    if not isinstance(made, list):
        raise StitchingError(f"{by} returned {_told(made)}; it must return list[Trajectory]")
    for number, stream in enumerate(made):
        if not isinstance(stream, Trajectory):
            raise StitchingError(f"{by} returned a list with {_told(stream)} in it; it must return list[Trajectory]")
        try:
            check_stream(stream, f"trajectory {number}")
        except (ValueError, TypeError, AttributeError) as error:  # a stream may be anything, such as a list without a dtype
            raise StitchingError(f"{by} returned a malformed trajectory: {error}") from error
    return made


def _told(made: object) -> str:
    return "None" if made is None else f"a {type(made).__name__}"


class TokenStitcher(Stitcher):
    """Token-in, token-out (report, section 4.2): the streams hold what the engine consumed and sampled, id by id. A turn's prompt
    may repeat the turn before exactly, up to the bounds below, or as the same text in other ids (`Boundary`); any other is a
    `TokenFidelityError`. Where the harness announced a restart, a prompt that doesn't repeat it exactly is one."""

    suffix_ids: Annotated[int, Field(ge=0)] = 96
    """s: ids at the end of a prompt that the next prompt may leave out (report: 96): what the chat template ends every prompt with,
    such as the generation prompt and an empty think block. Where a prompt doesn't end so, no stop id is among them."""
    dropped_ids: Annotated[int, Field(ge=0)] = 16
    """u: stop ids, and such as stand for white space or nothing, at the end of an answer that the next prompt may leave out
    (report: 16)."""

    @property
    def droppable(self) -> int:
        """`dropped_ids`."""
        return self.dropped_ids

    def build(self, tokenizer: ChatTokenizer, layout: RoutingLayout | None) -> TrialStitcher:
        from t1x.trajectory.edit import Bounds
        from t1x.trajectory.stitching import TokenTrialStitcher

        return TokenTrialStitcher(tokenizer, layout, Bounds(self.suffix_ids, self.dropped_ids))


class ExactStitcher(Stitcher):
    """`TokenStitcher` for harnesses whose prompts continue the ids that were sampled: any other turn is a `TokenFidelityError`, an
    announced restart too. So a trial is one trajectory, and every token is conditioned on what the engine consumed."""

    exact: ClassVar[bool] = True

    @property
    def droppable(self) -> int:
        """None at all: it takes no edge."""
        return 0

    def build(self, tokenizer: ChatTokenizer, layout: RoutingLayout | None) -> TrialStitcher:
        from t1x.trajectory.stitching import TokenTrialStitcher

        return TokenTrialStitcher(tokenizer, layout, None)


class RetokenizingStitcher(TokenStitcher):
    """The baseline that token-in, token-out replaces (report, section 4.2): a sample is the conversation's text, encoded again, so
    that ids differ from those that were sampled and everything behind them is conditioned on another history. Takes the turns that
    `TokenStitcher` takes, and makes the same trajectories of them where encoding changes nothing. It isn't `faithful`: the auditor
    counts what differs, and stops nothing."""

    faithful: ClassVar[bool] = False

    def build(self, tokenizer: ChatTokenizer, layout: RoutingLayout | None) -> TrialStitcher:
        from t1x.trajectory.retokenizing import RetokenizingTrialStitcher

        return RetokenizingTrialStitcher(super().build(tokenizer, layout), tokenizer)

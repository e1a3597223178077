"""What a boundary between two turns is found from, and what it does to the streams."""

from dataclasses import dataclass
from typing import Protocol

from t1x.engine.protocol import Completion
from t1x.text.tokenizer import Ids, RenderedPrompt
from t1x.trajectory.records import Boundary


class Shown(Protocol):
    """A turn's prompt; a `Turn` is one."""

    @property
    def prompt_ids(self) -> Ids:
        """[m]"""

    @property
    def rendered(self) -> RenderedPrompt | None:
        """As in `Turn`."""


class Answered(Shown, Protocol):
    """A turn's prompt and what was sampled for it; a `Turn` is one."""

    @property
    def completion(self) -> Completion: ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be missing from a prompt that repeats the turn before it; where nothing is said, as `TokenStitcher` has it."""

    suffix_ids: int = 96
    """Ids at the end of p_i."""
    dropped_ids: int = 16
    """Stop and blank ids at the end of a_i."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a turn does to the streams: all of them go on with the turn's prompt from `follow` on, masked, and then with what it
    sampled; every turn before it stays as it was sampled."""

    boundary: Boundary
    follow: int
    """Position in the turn's prompt."""
    captured: bool
    """Whether the stream's last id stands at `follow - 1` of the prompt too, so that this turn's capture has its row. Otherwise no
    capture has, and the row before it is put in its place (Eq. 14). False at a restart, which has no stream before it."""
    suffix: int = 0
    """s: ids at the end of the prompt before that this prompt doesn't repeat."""
    dropped: int = 0
    """u: stop and blank ids at the end of the answer before that this prompt doesn't repeat."""
    skipped: int = 0
    """Ids before `follow` that repeat ids at the end of the answer before, white space in front of them included, so that no stop
    token stands twice."""

"""Text to ids and back, and the ids that a harness puts between two turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from t1x.config import Component, Role

if TYPE_CHECKING:
    from t1x.text.quirks import TemplateQuirks

Ids = npt.NDArray[np.int32]

Message = tuple[str, str]
"""(role, content)"""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Ids and the text that they stand for, special tokens included."""

    text: str
    ids: Ids
    """[n]"""
    starts: Ids
    """[n]: the character of `text` at which each id begins, never falling. An id that continues a character which another one began
    starts where that one did."""

    def start(self, index: int) -> int:
        """The character at which an id begins; the text's end behind the last one."""
        return int(self.starts[index]) if index < len(self.starts) else len(self.text)

    def id_at(self, character: int) -> int | None:
        """The first id that begins at a character; the number of all at the text's end, None where an id stands across it."""
        at = int(np.searchsorted(self.starts, character))
        return at if self.start(at) == character else None

    def ends(self) -> Ids:
        """[n]: the character behind each id. Ids that share a character share its end."""
        behind = np.searchsorted(self.starts, self.starts, side="right")
        return np.append(self.starts, np.int32(len(self.text)))[behind]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A conversation that was rendered and encoded as a whole, with the generation prompt at its end."""

    encoded: EncodedText
    answer: tuple[int, int] | None
    """[b, e): the characters that stand where the last completion was: the last assistant message's content as it was rendered
    (with what the template writes between the end of its prompt and it), without the stop token behind it. None where there is no
    such message yet, or the template left it out."""


class ChatTokenizer(Protocol):
    """A tokenizer with its chat template."""

    vocab_size: int
    """Ids that may be sampled are below it. Those that the tokenizer itself hasn't stand for nothing: no text has them."""
    stop_ids: tuple[int, ...]
    """Ids that end an assistant message."""
    quirks: "TemplateQuirks"
    """What the template does to conversations."""

    @property
    def blank_ids(self) -> frozenset[int]:
        """Ids that stand for nothing but white space, or for nothing at all."""

    def encode(self, text: str) -> Ids:
        """Plain text to ids; text that looks like a special token is encoded as plain text (no injection)."""

    def decode(self, ids: Ids) -> str:
        """Ids to text, special tokens left out."""

    def said(self, ids: Ids) -> str:
        """What an answer says, special tokens left out: without what the template writes before every answer in history, which its
        prompt hadn't, so that the policy itself has to. Where that has special tokens (it names a channel), what stands before it
        is left out too."""

    def encode_spans(self, text: str) -> EncodedText:
        """A rendered text, with the special tokens that it spells, encoded as a whole."""

    def decode_spans(self, ids: Ids) -> EncodedText:
        """The text of ids, special tokens included, and where each begins. What isn't UTF-8 reads as U+FFFD."""

    def bytes_of(self, id_: int) -> bytes:
        """What one id stands for inside a text; alone it may be no UTF-8. Empty for an id that only the model has."""

    def prompt_renderer(self) -> Callable[[Sequence[Message]], RenderedPrompt]:
        """Encodes a whole conversation at once, as a text-based harness does. Special tokens that a content spells are plain text.
        Contents are rendered as the template has it: it may trim or prune them. It is for one conversation that grows, since it
        remembers what it has encoded."""

    def first_prompt(self, instruction: str) -> Ids:
        """The rendered first user message and the generation prompt."""

    def glue(self, observation: str, turn: int = 0) -> Ids:
        """What stands between the assistant message of a turn (0 for the first; its stop id included) and the next completion:
        whatever the template puts after the stop id, the tool message, the generation prompt. Found by an id-level diff of the
        rendered template."""


class Tokenizer(Component):
    """Which tokenizer and chat template the policy reads and writes."""

    vocab_size: Annotated[int, Role.SCALE, Field(gt=0)]
    """The model's: any id below it may be sampled, also one that the tokenizer itself hasn't (models pad their vocabularies)."""

    def build(self) -> ChatTokenizer:
        raise NotImplementedError

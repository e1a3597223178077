"""Text to ids and back, and the ids that a harness puts between two turns."""

from typing import Annotated, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from t1x.config import Component, Role

Ids = npt.NDArray[np.int32]


class ChatTokenizer(Protocol):
    """A tokenizer with its chat template."""

    vocab_size: int
    stop_ids: tuple[int, ...]
    """Ids that end an assistant message."""

    def encode(self, text: str) -> Ids:
        """Plain text to ids; text that looks like a special token is encoded as plain text (no injection)."""

    def decode(self, ids: Ids) -> str:
        """Ids to text, special tokens left out."""

    def first_prompt(self, instruction: str) -> Ids:
        """The rendered first user message and the generation prompt."""

    def glue(self, observation: str) -> Ids:
        """What stands between an assistant message (its stop id included) and the next completion: whatever the template puts after
        the stop id, the tool message, the generation prompt. Found by an id-level diff of the rendered template."""


class Tokenizer(Component):
    """Which tokenizer and chat template the policy reads and writes."""

    vocab_size: Annotated[int, Role.SCALE, Field(gt=0)]
    """Token ids are below it; the model needs as many or more."""

    def build(self) -> ChatTokenizer:
        raise NotImplementedError

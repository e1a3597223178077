"""How a harness comes to the next prompt: from the ids of what was shown and sampled, or from messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from t1x.engine.protocol import Completion
from t1x.text.tokenizer import ChatTokenizer, Ids, RenderedPrompt
from t1x.trajectory.prompt import PromptBuffer


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the engine is given for a turn; where nothing else is said, the fields are those of `Turn`."""

    ids: Ids
    stream_tokens: int
    """Tokens of the sample that training sees, up to the completion. Where the history is encoded again they may be more than the
    prompt's: what was sampled and shown stays in it."""
    restarted: bool = False
    rendered: RenderedPrompt | None = None
    placeholder_tokens: int = 0


class Conversation(Protocol):
    """One trial's dialogue."""

    def prompt(self) -> Prompt:
        """The prompt of the next turn."""

    def add(self, completion: Completion, observation: str) -> None:
        """What was sampled for that prompt, and what is shown for it. Where the completion was cut off, its message is closed."""


class IdConversation(Conversation):
    """Token ids are the source of truth: the next prompt is T_i ∥ glue(observation), never a re-encoded history, so every boundary
    is exact by construction."""

    def __init__(self, tokenizer: ChatTokenizer, instruction: str) -> None:
        self._tokenizer = tokenizer
        self._history = PromptBuffer(tokenizer.first_prompt(instruction))
        self._turns = 0
        self._placeholders: Sequence[int] = ()

    def prompt(self) -> Prompt:
        return Prompt(self._history.view(), len(self._history), placeholder_tokens=len(self._placeholders))

    def add(self, completion: Completion, observation: str) -> None:
        self._placeholders = self._tokenizer.stop_ids[:1] if completion.finish_reason == "length" else ()
        self._history.extend(completion.ids)
        self._history.extend(self._placeholders)
        self._history.extend(self._tokenizer.glue(observation, self._turns))
        self._turns += 1

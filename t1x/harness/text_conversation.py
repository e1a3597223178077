"""A dialogue whose source of truth is its messages: every prompt is the whole history, rendered and encoded again.

Invariant: where the prompt doesn't continue what was shown and sampled, as the stitcher's relations have it, whether history was
compacted here or the template changed it, the turn says so (`restarted`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from t1x.engine.protocol import Completion
from t1x.harness.conversation import Conversation, Prompt
from t1x.text.tokenizer import ChatTokenizer, Ids, RenderedPrompt
from t1x.trajectory.boundary import exact, inexact
from t1x.trajectory.edit import Bounds

Summary = Callable[[list[str]], str]
"""What stands for the commands of turns that were left out, behind the instruction."""


@dataclass(frozen=True, slots=True)
class _Shown:
    rendered: RenderedPrompt

    @property
    def prompt_ids(self) -> Ids:
        return self.rendered.encoded.ids


@dataclass(frozen=True, slots=True)
class _Answered(_Shown):
    completion: Completion


class TextConversation(Conversation):
    """Messages: the instruction, then a command and what it put out for every turn that wasn't left out."""

    def __init__(
        self, tokenizer: ChatTokenizer, instruction: str, *, role: str, longest: int, kept_turns: int, summary: Summary
    ) -> None:
        """`role` is that of observations. A prompt of more than `longest` tokens is compacted to a `summary` and the latest
        `kept_turns` turns."""
        self._tokenizer, self._instruction, self._role = tokenizer, instruction, role
        self._render = tokenizer.prompt_renderer()
        self._longest, self._kept_turns, self._summary = longest, kept_turns, summary
        self._turns: list[tuple[str, str]] = []
        """(answer, observation)"""
        self._left_out: list[str] = []
        self._shown: RenderedPrompt | None = None
        self._before: _Answered | None = None
        self._stream_tokens = 0
        self._stopped = False
        """Whether the last completion ends with a stop id."""

    def prompt(self) -> Prompt:
        rendered = self._rendered()
        follow = self._follow(rendered)
        tokens = len(rendered.encoded.ids) if follow is None else self._stream_tokens + len(rendered.encoded.ids) - follow
        compacted = max(tokens, len(rendered.encoded.ids)) > self._longest and len(self._turns) > self._kept_turns
        if compacted:
            left_out = len(self._turns) - self._kept_turns
            self._left_out += [answer for answer, _ in self._turns[:left_out]]
            del self._turns[:left_out]
            rendered = self._rendered()
            tokens = len(rendered.encoded.ids)
        restarted = self._before is not None and (compacted or follow is None)
        self._shown, self._stream_tokens = rendered, tokens
        closing = 1 if self._turns and not self._stopped else 0  # the template's stop token behind an answer that had none
        return Prompt(rendered.encoded.ids, tokens, restarted, rendered, closing)

    def add(self, completion: Completion, observation: str) -> None:
        assert self._shown is not None, "a prompt comes before its completion"
        self._before = _Answered(self._shown, completion)
        self._stream_tokens += len(completion.ids)
        self._stopped = len(completion.ids) > 0 and completion.ids[-1] in self._tokenizer.stop_ids
        self._turns.append((self._tokenizer.said(completion.ids).rstrip(), observation))

    def _rendered(self) -> RenderedPrompt:
        instruction = f"{self._instruction}\n\n{self._summary(self._left_out)}" if self._left_out else self._instruction
        turns = [message for answer, seen in self._turns for message in (("assistant", answer), (self._role, seen))]
        return self._render([("user", instruction), *turns])

    def _follow(self, now: RenderedPrompt) -> int | None:
        """The first id of a prompt that follows the last turn in the stream; None where the prompt doesn't continue it."""
        if self._before is None:
            return None
        found = exact(self._before, now.encoded.ids) or inexact(self._before, _Shown(now), self._tokenizer, Bounds())
        return None if isinstance(found, str) else found.follow

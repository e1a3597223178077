"""A dialogue whose source of truth is its messages: every prompt is the whole history, rendered and encoded again.

Invariant: where the history that is rendered isn't the text that was shown and sampled, whether it was compacted here or the
template changed it, the turn says so (`restarted`).
"""

from collections.abc import Callable

import numpy as np

from t1x.engine.protocol import Completion
from t1x.harness.conversation import Conversation, Prompt
from t1x.text.tokenizer import ChatTokenizer, RenderedPrompt

Summary = Callable[[list[str]], str]
"""What stands for the commands of turns that were left out, behind the instruction."""


class TextConversation(Conversation):
    """Messages: the instruction, then a command and what it put out for every turn that wasn't left out."""

    def __init__(
        self, tokenizer: ChatTokenizer, instruction: str, *, role: str, longest: int, kept_turns: int, summary: Summary
    ) -> None:
        """`role` is that of observations. A prompt of more than `longest` tokens is compacted to a `summary` and the latest
        `kept_turns` turns."""
        self._tokenizer, self._instruction, self._role = tokenizer, instruction, role
        self._longest, self._kept_turns, self._summary = longest, kept_turns, summary
        self._turns: list[tuple[str, str]] = []
        """(answer, observation)"""
        self._left_out: list[str] = []
        self._said = ""
        """The text that the last completion's ids stand for."""
        self._cut = False
        """Whether it was cut off."""
        self._shown: RenderedPrompt | None = None

    def prompt(self) -> Prompt:
        rendered = self._rendered()
        compacted = False
        if len(rendered.encoded.ids) > self._longest and len(self._turns) > self._kept_turns:
            left_out = len(self._turns) - self._kept_turns
            self._left_out += [answer for answer, _ in self._turns[:left_out]]
            del self._turns[:left_out]
            rendered, compacted = self._rendered(), True
        restarted = compacted or (self._shown is not None and not self._continues(self._shown, rendered))
        self._shown = rendered
        closing = 1 if self._cut and self._turns else 0  # the template's stop token behind an answer that had none
        return Prompt(rendered.encoded.ids, restarted, rendered, closing)

    def add(self, completion: Completion, observation: str) -> None:
        tokenizer, ids = self._tokenizer, completion.ids
        stopped = len(ids) > 0 and int(ids[-1]) in tokenizer.stop_ids
        self._said = tokenizer.decode_spans(ids[: len(ids) - stopped]).text
        self._cut = not stopped
        self._turns.append((tokenizer.decode(ids).removeprefix(tokenizer.quirks.history_only).rstrip(), observation))

    def _rendered(self) -> RenderedPrompt:
        instruction = f"{self._instruction}\n\n{self._summary(self._left_out)}" if self._left_out else self._instruction
        turns = [message for answer, seen in self._turns for message in (("assistant", answer), (self._role, seen))]
        return self._tokenizer.render_prompt([("user", instruction), *turns])

    def _continues(self, before: RenderedPrompt, now: RenderedPrompt) -> bool:
        """Whether a prompt is the one before it and the answer to that, apart from what no template keeps in history and from white
        space at the answer's end, and no id of it stands for the answer's end and for what follows."""
        if now.answer is None:
            return False
        begin, end = now.answer
        text, starts = now.encoded.text, now.encoded.starts
        at = int(np.searchsorted(starts, end))
        return (
            before.encoded.text in (text[:begin], text[:begin] + self._tokenizer.quirks.prompt_only)
            and self._said.rstrip() == text[begin:end].rstrip()
            and (end == len(text) or (at < len(starts) and int(starts[at]) == end))
        )

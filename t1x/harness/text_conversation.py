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
        self._shown: RenderedPrompt | None = None
        self._stream_tokens = 0
        self._said = ""
        """The text that the last completion's ids stand for, without its stop id."""
        self._stopped: tuple[int, ...] = ()
        """That stop id; none where it was cut off."""

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
        restarted = self._shown is not None and (compacted or follow is None)
        self._shown, self._stream_tokens = rendered, tokens
        closing = 1 if self._turns and not self._stopped else 0  # the template's stop token behind an answer that had none
        return Prompt(rendered.encoded.ids, tokens, restarted, rendered, closing)

    def add(self, completion: Completion, observation: str) -> None:
        tokenizer, ids = self._tokenizer, completion.ids
        self._stopped = tuple(id_ for id_ in ids[-1:].tolist() if id_ in tokenizer.stop_ids)
        self._said = tokenizer.decode_spans(ids[: len(ids) - len(self._stopped)]).text
        self._stream_tokens += len(ids)
        self._turns.append((tokenizer.decode(ids).removeprefix(tokenizer.quirks.history_only).rstrip(), observation))

    def _rendered(self) -> RenderedPrompt:
        instruction = f"{self._instruction}\n\n{self._summary(self._left_out)}" if self._left_out else self._instruction
        turns = [message for answer, seen in self._turns for message in (("assistant", answer), (self._role, seen))]
        return self._tokenizer.render_prompt([("user", instruction), *turns])

    def _follow(self, now: RenderedPrompt) -> int | None:
        """The first id of a prompt that follows the last turn, behind its stop id: it is the prompt before and the answer to that,
        apart from what no template keeps in history and from white space that the answer's end lost. None where that isn't so, or
        an id stands for the answer's end and for what follows."""
        if self._shown is None or now.answer is None:
            return None
        begin, end = now.answer
        text, starts, ids = now.encoded.text, now.encoded.starts, now.encoded.ids
        same = self._shown.encoded.text in (text[:begin], text[:begin] + self._tokenizer.quirks.prompt_only)
        same = same and self._said.startswith(text[begin:end]) and not self._said[end - begin :].strip()
        at = int(np.searchsorted(starts, end))
        if not same or (at < len(starts) and int(starts[at]) != end):
            return None
        return at + len(self._stopped) if tuple(ids[at : at + 1].tolist()) == self._stopped else at

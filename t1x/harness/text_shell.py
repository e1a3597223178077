"""The shell harness of most peers: messages are its source of truth."""

from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.harness.conversation import Conversation
from t1x.harness.observation import cut
from t1x.harness.shell import ShellHarness
from t1x.harness.text_conversation import TextConversation
from t1x.text.tokenizer import ChatTokenizer


class TextShellHarness(ShellHarness):
    """The shell harness for ablations: every turn renders and encodes the whole history, so that it may come back as other ids
    than were sampled. Answers lose white space at their end, as with most harnesses. When the
    context runs short, old turns are replaced by a list of their commands."""

    exact: ClassVar[bool] = False

    observation_role: Literal["tool", "user"] = "tool"
    """Who says what a command put out. Templates that drop the reasoning before the last `user` message then drop it every turn
    (report, section 4.2)."""
    compaction_free_tokens: Annotated[int, Role.SCALE, Field(ge=0)] = 64
    """Old turns are summarized when fewer tokens are free (not stated in the report); 0 is never."""
    kept_turns: Annotated[int, Role.SCALE, Field(ge=0)] = 1
    """Latest turns that stand verbatim behind a summary (not stated in the report)."""
    summary_tokens: Annotated[int, Role.SCALE, Field(ge=1)] = 32
    """Most tokens of a summary (not stated in the report); of a longer list of commands the middle is left out."""

    @model_validator(mode="after")
    def _compaction_fits(self) -> Self:
        if not self.compaction_free_tokens:
            return self
        if self.max_command_tokens > self.compaction_free_tokens:
            raise ValueError(
                f"max_command_tokens ({self.max_command_tokens}) exceeds compaction_free_tokens ({self.compaction_free_tokens}), "
                f"so a completion could be cut off by the context before history is summarized; raise that"
            )
        threshold = self.context_tokens - self.compaction_free_tokens
        turns = self.kept_turns * (self.max_command_tokens + self.observation_tokens)
        if (left := self.summary_tokens + turns + self.max_command_tokens) >= threshold:
            raise ValueError(
                f"what a compaction leaves and the next completion, summary_tokens ({self.summary_tokens}), kept_turns "
                f"({self.kept_turns}) of max_command_tokens ({self.max_command_tokens}) and observation_tokens "
                f"({self.observation_tokens}), and one more command, are {left} tokens, but the next one is at {threshold}, "
                f"context_tokens ({self.context_tokens}) without compaction_free_tokens ({self.compaction_free_tokens}); raise "
                f"context_tokens or lower the others"
            )
        return self

    def conversation(self, instruction: str, tokenizer: ChatTokenizer) -> Conversation:
        free = self.compaction_free_tokens
        return TextConversation(
            tokenizer,
            instruction,
            role=self.observation_role,
            longest=self.context_tokens - free if free else self.context_tokens,
            kept_turns=self.kept_turns if free else self.max_turns,
            summary=partial(_summary, tokenizer=tokenizer, tokens=self.summary_tokens),
        )


def _summary(commands: list[str], tokenizer: ChatTokenizer, tokens: int) -> str:
    """The commands that were run, without what they put out."""
    return cut("Run before: " + "; ".join(commands), tokenizer, head=tokens // 2, tail=tokens - tokens // 2 - 1)

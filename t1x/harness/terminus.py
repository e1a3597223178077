"""The Terminus-2 agent loop, as a component."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.config.requirements import worker
from t1x.harness.harness import Harness

Tokens = Annotated[int, Role.SCALE, Field(ge=1)]


class Terminus2Harness(Harness):
    """Terminus-2 (report, section 6.1): each turn the agent sends keystrokes to a terminal and is shown its screen; it summarizes
    its own history when the context runs short. Whether it thinks is said by the tokenizer, whose template decides it."""

    exact: ClassVar[bool] = False
    context_tokens: Annotated[int, Role.SCALE, Field(ge=2)] = 96_000
    """Tokens of prompt and completion (report, section 6.1; section 6.4 speaks of 56k of input)."""
    max_turns: Annotated[int, Role.SCALE, Field(ge=1)] = 60
    """Turns after which a trial ends (report, section 6.1; section 6.4 speaks of a ceiling of 500 and an average of 94.4)."""
    max_output_tokens: Tokens = 8192
    """Tokens of one completion (report, section 6.4)."""
    parser: Literal["json", "xml"] = "json"
    """Form of the agent's answers (not stated in the report; Terminus-2's default)."""
    command_timeout: Annotated[float, Role.SCALE, Field(gt=0)] = 60.0
    """Most seconds that an agent may wait for one command (not stated in the report; Terminus-2's)."""
    output_limit: Annotated[int, Role.SCALE, Field(ge=1)] = 10_000
    """Bytes of the terminal's output that a turn shows, half from its beginning, half from its end (not stated in the report;
    Terminus-2's)."""
    confirm_done: bool = True
    """Whether the agent has to say twice that it is done (not stated in the report; Terminus-2's)."""
    compaction: bool = True
    """Whether history is summarized before the context is full (report, section 6.1: proactive)."""
    compaction_free_tokens: Tokens = 8000
    """It is summarized when fewer tokens are free (the report's threshold has no number; Terminus-2's)."""
    unwound_free_tokens: Tokens = 4000
    """A turn may leave fewer than that: the latest messages are then dropped until so many are free, and the summary is asked for
    (not stated in the report; Terminus-2's)."""
    summary_prompt_tokens: Tokens = 1000
    """Kept for the request for a summary (not stated in the report)."""
    summary_tokens: Tokens = 3000
    """Most tokens of a summary (not stated in the report). One that doesn't fit fails: a campaign lost 98.3 % of its summaries to
    that (section 9.2)."""
    kept_tokens: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Latest tokens of the history that stand verbatim behind a summary (not stated in the report; Terminus-2 keeps none)."""

    @model_validator(mode="after")
    def _compaction_fits(self) -> Self:
        if self.max_output_tokens >= self.context_tokens:
            raise ValueError(
                f"max_output_tokens ({self.max_output_tokens}) leaves no room for a prompt in {self.context_tokens} context_tokens"
            )
        if not self.compaction:
            return self
        if (request := self.summary_prompt_tokens + self.summary_tokens) > self.unwound_free_tokens:
            raise ValueError(
                f"a summary takes {request} tokens, summary_prompt_tokens ({self.summary_prompt_tokens}) and summary_tokens "
                f"({self.summary_tokens}), but only unwound_free_tokens ({self.unwound_free_tokens}) are sure to be free when it "
                f"is asked for, so it would fail; raise that or lower summary_tokens (report, section 9.2)"
            )
        if self.unwound_free_tokens > self.compaction_free_tokens:
            raise ValueError(
                f"unwound_free_tokens ({self.unwound_free_tokens}) exceeds compaction_free_tokens ({self.compaction_free_tokens}), "
                f"so every compaction would drop messages first; lower it"
            )
        threshold = self.context_tokens - self.compaction_free_tokens
        if (left := self.summary_tokens + self.kept_tokens + self.max_output_tokens) >= threshold:
            raise ValueError(
                f"what a compaction leaves and the next completion, summary_tokens ({self.summary_tokens}), kept_tokens "
                f"({self.kept_tokens}) and max_output_tokens ({self.max_output_tokens}), are {left} tokens, but the next one "
                f"is at {threshold}, context_tokens ({self.context_tokens}) without compaction_free_tokens "
                f"({self.compaction_free_tokens}); raise context_tokens or lower the others"
            )
        return self

    def missing(self) -> list[str]:
        return worker(self)

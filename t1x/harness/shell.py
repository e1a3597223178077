"""The shell harness: one command a turn, then its output, until the agent says that it is done.

Invariant: token ids are the source of truth. The next prompt is T_i ∥ glue(observation), never a re-encoded history, so every
boundary is exact by construction.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from t1x.config import Role
from t1x.engine.protocol import Decoding, EngineError, EngineWorker, Sampling
from t1x.harness.harness import Harness, Sink
from t1x.harness.observation import observation
from t1x.harness.records import EndedBy
from t1x.sandbox.protocol import SandboxLease
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer, Ids
from t1x.trajectory.prompt import PromptBuffer
from t1x.trajectory.records import Turn


class ShellHarness(Harness):
    """One shell command a turn. A command that is cut off by `max_command_tokens` is not run: its message is closed with the
    stop id (as context, not as something sampled) and the agent is told."""

    max_turns: Annotated[int, Role.SCALE, Field(ge=1)] = 8
    """Turns after which a trial ends."""
    context_tokens: Annotated[int, Role.SCALE, Field(ge=2)] = 256
    max_command_tokens: Annotated[int, Role.SCALE, Field(ge=1)] = 24
    """Tokens of one completion, its stop id included."""
    observation_tokens: Annotated[int, Role.SCALE, Field(ge=1)] = 24
    """Tokens of a command's output that the agent is shown; of a longer one the middle is left out."""
    observation_tail: Annotated[int, Role.SCALE, Field(ge=0)] = 8
    """How many of them are the output's last."""
    command_timeout: Annotated[float, Role.SCALE, Field(gt=0)] = 10.0
    """Seconds for one command."""
    done_text: str = "done"
    """The message that ends the trial instead of being run."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> "ShellHarness":
        if self.observation_tail > self.observation_tokens:
            raise ValueError(
                f"observation_tail {self.observation_tail} is part of observation_tokens and exceeds {self.observation_tokens}"
            )
        if self.max_command_tokens >= self.context_tokens:
            raise ValueError(
                f"max_command_tokens {self.max_command_tokens} leaves no room for a prompt in {self.context_tokens} tokens"
            )
        return self

    async def run(
        self,
        *,
        task: Task,
        sandbox: SandboxLease,
        engine: EngineWorker,
        tokenizer: ChatTokenizer,
        decoding: Decoding,
        seed_for: Callable[[int], int],
        session: str,
        sink: Sink,
    ) -> EndedBy:
        sink.message("user", task.instruction)
        history = PromptBuffer(tokenizer.first_prompt(task.instruction))
        for index in range(self.max_turns):
            room = self.context_tokens - len(history)
            if room < 1:
                return EndedBy.CONTEXT
            prompt = history.view()
            sampling = Sampling(decoding, min(self.max_command_tokens, room), tokenizer.stop_ids, seed_for(index))
            completion = await engine.generate(prompt, sampling, session)
            sink.turn(Turn(index, prompt, completion, decoding.temperature))
            history.extend(completion.ids)
            text = tokenizer.decode(completion.ids).strip()
            sink.message("assistant", text)
            if completion.finish_reason == "abort":
                raise EngineError(f"the engine aborted the completion of turn {index}")
            if completion.finish_reason == "length":
                if len(history) >= self.context_tokens:
                    return EndedBy.CONTEXT
                shown = "command too long"
                history.extend(tokenizer.stop_ids[:1])
            elif text == self.done_text:
                return EndedBy.DONE
            else:
                result = await sandbox.exec(text, self.command_timeout)
                shown = observation(
                    result, tokenizer, head=self.observation_tokens - self.observation_tail, tail=self.observation_tail
                )
            sink.message("tool", shown)
            history.extend(tokenizer.glue(shown))
        return EndedBy.TURN_LIMIT

    def script(self, commands: Sequence[str], tokenizer: ChatTokenizer) -> list[Ids]:
        stop = np.array(tokenizer.stop_ids[:1], np.int32)
        return [np.concatenate([tokenizer.encode(text), stop]) for text in (*commands, self.done_text)]

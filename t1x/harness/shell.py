"""The shell harness: one command a turn, then its output, until the agent says that it is done."""

from collections.abc import Callable, Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from t1x.config import Role
from t1x.engine.protocol import Decoding, EngineError, EngineWorker, Sampling
from t1x.harness.conversation import Conversation, IdConversation
from t1x.harness.harness import Harness, Sink
from t1x.harness.observation import observation
from t1x.sandbox.protocol import SandboxLease
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer, Ids
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn


class ShellHarness(Harness):
    """One shell command a turn; token ids are the source of truth. A command that is cut off by `max_command_tokens` is not run:
    its message is closed with the stop id (as context, not as something sampled) and the agent is told."""

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
    def _sizes_fit(self) -> Self:
        if self.observation_tail > self.observation_tokens:
            raise ValueError(
                f"observation_tail {self.observation_tail} is part of observation_tokens and exceeds {self.observation_tokens}"
            )
        if self.max_command_tokens >= self.context_tokens:
            raise ValueError(
                f"max_command_tokens {self.max_command_tokens} leaves no room for a prompt in {self.context_tokens} tokens"
            )
        return self

    def conversation(self, instruction: str, tokenizer: ChatTokenizer) -> Conversation:
        """What makes a trial's prompts."""
        return IdConversation(tokenizer, instruction)

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
        conversation = self.conversation(task.instruction, tokenizer)
        for index in range(self.max_turns):
            prompt = conversation.prompt()
            room = self.context_tokens - max(len(prompt.ids), prompt.stream_tokens)
            if room < 1:
                return EndedBy.CONTEXT
            sampling = Sampling(decoding, min(self.max_command_tokens, room), tokenizer.stop_ids, seed_for(index))
            done = await engine.generate(prompt.ids, sampling, session)
            sink.turn(
                Turn(
                    index,
                    prompt.ids,
                    done,
                    decoding.temperature,
                    restarted=prompt.restarted,
                    rendered=prompt.rendered,
                    placeholder_tokens=prompt.placeholder_tokens,
                )
            )
            text = tokenizer.said(done.ids).strip()
            sink.message("assistant", text)
            if done.finish_reason == "abort":
                raise EngineError(f"the engine aborted the completion of turn {index}")
            if done.finish_reason == "length":
                if len(done.ids) >= room:
                    return EndedBy.CONTEXT
                shown = "command too long"
            elif text == self.done_text:
                return EndedBy.DONE
            else:
                result = await sandbox.exec(text, self.command_timeout)
                shown = observation(
                    result, tokenizer, head=self.observation_tokens - self.observation_tail, tail=self.observation_tail
                )
            sink.message("tool", shown)
            conversation.add(done, shown)
        return EndedBy.TURN_LIMIT

    def script(self, commands: Sequence[str], tokenizer: ChatTokenizer) -> list[Ids]:
        stop = np.array(tokenizer.stop_ids[:1], np.int32)
        script = [np.concatenate([tokenizer.encode(text), stop]) for text in (*commands, self.done_text)]
        longest = max(range(len(script)), key=lambda index: len(script[index]))
        if (needed := len(script[longest])) > self.max_command_tokens:
            said = f"command {longest + 1}" if longest < len(commands) else f"done_text {self.done_text!r}"
            raise ValueError(
                f"{said} is too long: {type(self).__name__}.max_command_tokens = {self.max_command_tokens}, needs {needed} or more"
            )
        return script

"""What an agent loop is given and what it hands on."""

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Protocol

from pydantic import Field

from t1x.config import Component, Role
from t1x.engine.protocol import Decoding, EngineWorker
from t1x.sandbox.protocol import SandboxLease
from t1x.tasks.task import Task
from t1x.text.tokenizer import ChatTokenizer, Ids
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Turn


class Sink(Protocol):
    """Receives a trial as it happens, so that a cancelled one keeps what it has."""

    def turn(self, turn: Turn) -> None:
        """A turn, as soon as it is sampled."""

    def message(self, role: str, text: str) -> None:
        """What was said, for readers: `user`, `assistant` or `tool`."""


class Harness(Component):
    """The agent loop around the policy."""

    context_tokens: Annotated[int, Role.SCALE, Field(ge=2)]
    """Tokens of prompt and completion that a trial may grow to; at most the engine's context."""
    exact: ClassVar[bool] = True
    """Whether every prompt continues the ids that the engine consumed and sampled before. False for one that keeps text as its
    source of truth, or summarizes its history."""

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
        """Works on the task until the agent is done or a limit of the harness is reached (`DONE`, `TURN_LIMIT`, `CONTEXT`).
        `seed_for(turn)` is the random stream of a turn's request, `session` the engine's. Whoever runs it keeps the agent's
        deadline (by cancelling it) and tags the `SandboxError` and `EngineError` that it lets through."""
        raise NotImplementedError

    def script(self, commands: Sequence[str], tokenizer: ChatTokenizer) -> list[Ids]:
        """The completions, stop ids included, by which an agent in this harness runs the commands and ends the trial. Raises
        `ValueError` for one that is longer than it lets a completion be."""
        raise NotImplementedError

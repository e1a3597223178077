"""An engine that plays back given completions, so that demonstrations are recorded through the same trials as the policy's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.engine.protocol import Completion, EngineError, Sampling


class ScriptedEngine:
    """Returns each session's completions turn by turn: log-probabilities 0, routing of no layers, version 0. Stop ids are the
    script's."""

    version = 0

    def __init__(self, scripts: Mapping[str, Sequence[npt.NDArray[np.int32]]]) -> None:
        """`scripts`: session to the ids of its completions, stop ids included."""
        self._turns: dict[str, Iterator[npt.NDArray[np.int32]]] = {session: iter(turns) for session, turns in scripts.items()}

    async def generate(self, prompt_ids: npt.NDArray[np.int32], sampling: Sampling, session: str) -> Completion:
        """The session's next completion, cut to `max_tokens`; forced ids are taken instead and leave the script as it was. Raises
        `ValueError` for an empty prompt, a session without a script or too many forced ids, `EngineError` where the script has
        ended."""
        if len(prompt_ids) == 0:
            raise ValueError(f"session {session}: the prompt is empty")
        if sampling.forced_ids is None:
            turn = self._next(session)
            ids = np.asarray(turn, dtype=np.int32)[: sampling.max_tokens]
            stopped = len(ids) == len(turn)
        else:
            ids = np.array(sampling.forced_ids, dtype=np.int32)
            if not 1 <= len(ids) <= sampling.max_tokens:
                raise ValueError(f"session {session}: {len(ids)} forced ids, but max_tokens is {sampling.max_tokens}")
            stopped = int(ids[-1]) in sampling.stop_ids
        return Completion(
            ids=ids,
            logprobs=np.zeros(len(ids), dtype=np.float32),
            routing=np.zeros((len(prompt_ids) + len(ids) - 1, 0, 0), dtype=np.uint8),
            routing_start=0,
            finish_reason="stop" if stopped else "length",
            version=self.version,
        )

    def _next(self, session: str) -> npt.NDArray[np.int32]:
        if session not in self._turns:
            raise ValueError(f"session {session} has no script")
        turn = next(self._turns[session], None)
        if turn is None:
            raise EngineError(f"session {session}: its script has no further completion")
        return turn

    async def release(self, session: str) -> None:
        """Forgets the rest of the session's script."""
        self._turns.pop(session, None)

    async def pause(self) -> None:
        """Nothing is ever being sampled."""

    async def resume(self) -> None:
        """Nothing waits."""

    async def publish(self, version: int, weights: Mapping[str, Any]) -> None:
        """Raises `ValueError`: a script has no weights."""
        raise ValueError("a scripted engine has no weights to publish")

    async def close(self) -> None:
        """Nothing to free."""

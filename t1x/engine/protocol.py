"""Sampling from the policy.

Invariants:
- a completion's ids are exactly what was sampled, the stop id included; its log-probabilities are those of the
  distribution that was sampled from;
- a completion is of one policy version: `publish` waits until nothing is being sampled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from t1x.config import Component, Role
from t1x.model.qwen3_moe import Model
from t1x.model.routing_layout import Experts

FinishReason = Literal["stop", "length", "abort"]


class EngineError(RuntimeError):
    """The engine failed: the trials that were waiting for it are invalid."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Which distribution tokens are sampled from. The trainer's is softmax(logits / temperature), so what is trained on is sampled
    with `top_p` 1 and `top_k` 0; evaluations may cut the distribution."""

    temperature: float
    """0 is greedy, whatever the cut; the log-probabilities are then those of temperature 1 without one."""
    top_p: float = 1.0
    """Of what `top_k` leaves, only the fewest most probable tokens whose share reaches this are sampled (at least one)."""
    top_k: int = 0
    """Only so many most probable tokens are sampled; 0 is no limit."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one completion."""

    decoding: Decoding
    max_tokens: int
    stop_ids: tuple[int, ...]
    seed: int
    """Of this request's own random stream (64 bits): who shares a batch doesn't change what is sampled."""
    forced_ids: npt.NDArray[np.int32] | None = None
    """[n ≥ 1]: ids that are taken instead of sampled; the completion then tells which log-probabilities and experts they have, and
    ends with the last of them. None where the engine is to sample."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the engine sampled after `prompt_ids`."""

    ids: npt.NDArray[np.int32]
    """[n], the stop id included where one was sampled."""
    logprobs: npt.NDArray[np.float32]
    """[n]"""
    routing: Experts
    """[rows, layers, k]: row i holds the experts used at position `routing_start + i` of prompt ∥ ids (in the router's slot order);
    rows = len(prompt) + n - 1 - routing_start."""
    routing_start: int
    """First position that isn't served from the session's cache (an earlier completion of the session returned those rows)."""
    finish_reason: FinishReason
    version: int
    """Policy version (number of optimizer updates) that sampled all of it."""
    cached_tokens: int = 0
    """Positions below it were served from a cache. Where their rows are returned all the same, they equal those returned before."""


class EngineWorker(Protocol):
    """A living engine."""

    version: int

    async def generate(self, prompt_ids: npt.NDArray[np.int32], sampling: Sampling, session: str) -> Completion:
        """Samples one completion. A session keeps its cache from turn to turn; only the part of the prompt that isn't a prefix of
        what the session already holds is computed. Raises `ValueError` for an empty prompt, an id outside the vocabulary or a
        prompt that leaves no room in the context; `EngineError` when the engine fails."""

    async def release(self, session: str) -> None:
        """Forgets a session's cache; unknown sessions are ignored. Aborts what it is sampling (finish_reason "abort")."""

    async def pause(self) -> None:
        """Returns when nothing is being sampled any more; new requests wait for `resume`."""

    async def resume(self) -> None: ...

    async def publish(self, version: int, weights: dict[str, Any]) -> None:
        """Quiesces, loads weights (Hugging Face names to tensors), drops every cache, sets the version, resumes."""

    async def close(self) -> None:
        """Fails what is waiting and frees everything."""


class Engine(Component):
    """What samples from the policy."""

    context_length: Annotated[int | None, Role.SCALE, Field(gt=1)] = None
    """Most tokens of a prompt and its completion, at most the model's max_position_embeddings; as many as those where None."""

    @property
    def returns_routing(self) -> bool:
        """Whether completions carry the routed experts that replay needs."""
        return True

    @property
    def devices(self) -> int:
        """Accelerators that it takes."""
        return 0

    def objection(self, model: Model) -> str:
        """Why it can't sample from this model and what to set; empty where it can."""
        return ""

    def indeterminism(self, concurrency: int) -> str:
        """Why what it samples may depend on which of `concurrency` trials share its batches, and what to set; empty where it can be
        built so that it doesn't."""
        return "who shares a batch may change the last bits of what it computes; use @EmbeddedEngine()"

    def build(self, model: Model, weights: Mapping[str, Any], version: int = 0, deterministic: bool = False) -> EngineWorker:
        """A living engine that samples from `weights` (Hugging Face names to tensors), policy version `version`; where it is
        `deterministic`, a session's completions depend on the session's own requests and the weights alone, to the bit. Raises
        `ValueError` where the context exceeds the model's or the weights don't fit the model."""
        raise NotImplementedError

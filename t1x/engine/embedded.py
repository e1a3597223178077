"""The engine that lives in this process: small models on a CPU, no server."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from t1x.config import Role
from t1x.engine.protocol import Engine, EngineWorker
from t1x.model.qwen3_moe import Model, Qwen3Moe

if TYPE_CHECKING:
    from torch import Tensor


class EmbeddedEngine(Engine):
    """Continuous batching over a key-value cache that sessions keep from turn to turn, with weights of its own."""

    max_sessions: Annotated[int, Role.PLACEMENT, Field(gt=0)] = 64
    """Sessions whose cache is kept, and requests sampled at a time. Where more are alive, the longest idle loses its cache and is
    recomputed at its next turn; where all are sampling, requests wait."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of weights, activations and cache. The trainer's is float32: with bfloat16 the two differ as they do in production."""

    def objection(self, model: Model) -> str:
        return "" if isinstance(model, Qwen3Moe) else "it runs @Qwen3Moe() only; use another engine"

    def indeterminism(self, concurrency: int) -> str:
        if self.max_sessions >= concurrency:
            return ""
        return (
            f"max_sessions ({self.max_sessions}) is less than the concurrency of {concurrency}, so which sessions lose their cache "
            f"would depend on when they ask; raise it to {concurrency}, or lower concurrency"
        )

    def build(self, model: Model, weights: "Mapping[str, Tensor]", version: int = 0, deterministic: bool = False) -> EngineWorker:
        from t1x.engine.continuous import ContinuousBatching

        assert isinstance(model, Qwen3Moe), "the experiment was checked for that"
        return ContinuousBatching(self, model, weights, version, deterministic)

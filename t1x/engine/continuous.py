"""Continuous batching: requests of many sessions share every step of the model.

Invariants:
- a position's routing row is returned by the completion that computed it, and cached positions are those whose rows were returned:
  what a cancelled request computed is forgotten;
- a completion is of one policy version: weights change only while nothing is being sampled;
- a failure reaches every request that waits.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from t1x.engine.cached_decoder import CachedDecoder, Indices, Rows
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, EngineError, FinishReason, Sampling
from t1x.engine.sampler import cut, sample, uniforms
from t1x.engine.tiled_decoder import TiledDecoder
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.routing_layout import Experts


@dataclass(slots=True, eq=False)
class _Request:
    prompt: npt.NDArray[np.int64]
    sampling: Sampling
    session: str
    result: asyncio.Future[Completion]
    start: int = 0
    """First position that this request computes, once it has a slot."""


class ContinuousBatching:
    """The worker of `EmbeddedEngine`. All sessions' state is in arrays indexed by slot; a task drives the model while there is
    work."""

    def __init__(
        self, spec: EmbeddedEngine, model: Qwen3Moe, weights: Mapping[str, Any], version: int, deterministic: bool
    ) -> None:
        if (spec.context_length or 0) > model.max_position_embeddings:
            raise ValueError(
                f"context_length ({spec.context_length}) exceeds the model's max_position_embeddings "
                f"({model.max_position_embeddings})"
            )
        self.version = version
        self._deterministic = deterministic
        slots, context = spec.max_sessions, spec.context_length or model.max_position_embeddings
        self._context, self._vocabulary = context, model.vocab_size
        self._decoder = (TiledDecoder if deterministic else CachedDecoder)(model, slots, context, getattr(torch, spec.dtype))
        self._decoder.load(weights)

        self._tokens: Indices = np.zeros((slots, context), dtype=np.int64)
        self._logprobs = np.zeros((slots, context), dtype=np.float32)
        layout = model.routing_layout
        assert layout is not None, "its layers have routed experts"
        self._routing: Experts = np.zeros((slots, context, layout.layers, layout.k), dtype=layout.dtype)
        self._length: Indices = np.zeros(slots, dtype=np.int64)
        """Tokens known."""
        self._cached: Indices = np.zeros(slots, dtype=np.int64)
        """Positions computed."""
        self._limit: Indices = np.zeros(slots, dtype=np.int64)
        """Length at which the completion ends."""
        self._temperature = np.zeros(slots, dtype=np.float32)
        self._top_p = np.ones(slots, dtype=np.float64)
        self._top_k: Indices = np.zeros(slots, dtype=np.int64)
        self._seed = np.zeros(slots, dtype=np.uint64)
        self._forced: Indices = np.full((slots, context), -1, dtype=np.int64)
        """Ids that are taken instead of sampled; -1 where there is none."""
        self._stops: Indices = np.full((slots, 1), -1, dtype=np.int64)

        self._free = set(range(slots))
        self._slot_of: dict[str, int] = {}
        """Of every session that has one, least recently used first."""
        self._active: dict[int, _Request] = {}
        self._waiting: list[_Request] = []
        self._paused = False
        self._pausing: list[asyncio.Future[None]] = []
        self._driver: asyncio.Task[None] | None = None
        self._failure: str | None = None

    async def generate(self, prompt_ids: npt.NDArray[np.int32], sampling: Sampling, session: str) -> Completion:
        """See `EngineWorker`. A session samples one completion at a time."""
        if self._failure:
            raise EngineError(self._failure)
        self._check(prompt_ids, sampling, session)
        loop = asyncio.get_running_loop()
        request = _Request(np.array(prompt_ids, dtype=np.int64), sampling, session, loop.create_future())
        self._waiting.append(request)
        self._drive_on()
        try:
            return await request.result
        except asyncio.CancelledError:
            self._forget(request)
            raise

    async def release(self, session: str) -> None:
        """See `EngineWorker`."""
        for request in [r for r in (*self._waiting, *self._active.values()) if r.session == session]:
            self._complete(request, "abort")
        slot = self._slot_of.pop(session, None)
        if slot is not None:
            self._cached[slot] = 0
            self._free.add(slot)
            self._drive_on()

    async def pause(self) -> None:
        """See `EngineWorker`."""
        self._paused = True
        while self._active:
            quiet = asyncio.get_running_loop().create_future()
            self._pausing.append(quiet)
            await quiet

    async def resume(self) -> None:
        """See `EngineWorker`."""
        self._paused = False
        self._drive_on()

    async def publish(self, version: int, weights: Mapping[str, Any]) -> None:
        """See `EngineWorker`. Raises `ValueError` where the weights don't fit the model; the version is then as it was."""
        try:
            await self.pause()
            self._decoder.load(weights)
            self._cached[:] = 0
            self.version = version
        finally:
            await self.resume()

    async def close(self) -> None:
        """See `EngineWorker`."""
        self._fail("the engine was closed")

    def _check(self, prompt_ids: npt.NDArray[np.int32], sampling: Sampling, session: str) -> None:
        n = len(prompt_ids)
        if n == 0:
            raise ValueError(f"session {session}: the prompt is empty")
        if n >= self._context:
            raise ValueError(f"session {session}: a prompt of {n} tokens leaves no room in a context of {self._context}")
        outside = np.flatnonzero((prompt_ids < 0) | (prompt_ids >= self._vocabulary))
        if len(outside):
            at = int(outside[0])
            raise ValueError(
                f"session {session}: prompt id {prompt_ids[at]} at {at} is outside the vocabulary of {self._vocabulary}"
            )
        if sampling.forced_ids is not None:
            self._check_forced(sampling.forced_ids, min(sampling.max_tokens, self._context - n), session)
        decoding = sampling.decoding
        if sampling.max_tokens < 1 or decoding.temperature < 0 or not 0 < decoding.top_p <= 1 or decoding.top_k < 0:
            raise ValueError(
                f"session {session}: max_tokens must be at least 1, temperature at least 0, top_p above 0 and at most 1, top_k at "
                f"least 0, got {sampling}"
            )
        alive = {*self._slot_of, *(request.session for request in self._waiting)}
        if self._deterministic and session not in alive and len(alive) >= len(self._length):
            raise ValueError(
                f"session {session}: {len(alive)} sessions are alive, and a deterministic engine keeps the cache of all of them; "
                f"raise max_sessions"
            )
        if any(r.session == session for r in self._waiting) or self._slot_of.get(session) in self._active:
            raise ValueError(f"session {session} is sampling already; a session samples one completion at a time")

    def _check_forced(self, forced: npt.NDArray[np.int32], room: int, session: str) -> None:
        if not 1 <= len(forced) <= room:
            raise ValueError(f"session {session}: {len(forced)} forced ids, but the completion has room for 1 to {room}")
        outside = np.flatnonzero((forced < 0) | (forced >= self._vocabulary))
        if len(outside):
            at = int(outside[0])
            raise ValueError(f"session {session}: forced id {forced[at]} at {at} is outside the vocabulary of {self._vocabulary}")

    def _drive_on(self) -> None:
        if self._failure is None and (self._driver is None or self._driver.done()):
            self._driver = asyncio.get_running_loop().create_task(self._drive())

    async def _drive(self) -> None:
        try:
            while True:
                self._admit()
                if not self._active:
                    return
                self._step()
                await asyncio.sleep(0)
        except Exception as error:
            self._fail(f"the engine failed: {type(error).__name__}: {error}", error)

    def _admit(self) -> None:
        if self._paused or not self._waiting:
            return
        homeless = []
        for request in self._waiting:
            if request.session in self._slot_of:
                self._start(request, self._slot_of.pop(request.session))
            else:
                homeless.append(request)
        self._waiting = []
        for request in homeless:
            slot = self._new_slot()
            if slot is None:
                self._waiting.append(request)
            else:
                self._start(request, slot)

    def _new_slot(self) -> int | None:
        if self._free:
            slot = min(self._free)
            self._free.remove(slot)
            return slot
        idle = next((session for session, slot in self._slot_of.items() if slot not in self._active), None)
        if idle is None:
            return None
        slot = self._slot_of.pop(idle)
        self._cached[slot] = 0
        return slot

    def _start(self, request: _Request, slot: int) -> None:
        """Gives the request a slot; of what the slot holds, the longest common prefix with the prompt stays, but for the last
        id."""
        prompt, sampling = request.prompt, request.sampling
        self._slot_of[request.session] = slot
        self._active[slot] = request
        held = min(int(self._cached[slot]), len(prompt) - 1)
        differs = self._tokens[slot, :held] != prompt[:held]
        request.start = int(differs.argmax()) if differs.any() else held
        self._tokens[slot, : len(prompt)] = prompt
        self._cached[slot], self._length[slot] = request.start, len(prompt)
        self._limit[slot] = min(len(prompt) + sampling.max_tokens, self._context)
        self._forced[slot] = -1
        if sampling.forced_ids is not None:
            self._limit[slot] = len(prompt) + len(sampling.forced_ids)
            self._forced[slot, len(prompt) : self._limit[slot]] = sampling.forced_ids
        self._temperature[slot] = sampling.decoding.temperature
        self._top_p[slot], self._top_k[slot] = sampling.decoding.top_p, sampling.decoding.top_k
        self._seed[slot] = sampling.seed & (2**64 - 1)
        missing = len(sampling.stop_ids) - self._stops.shape[1]
        if missing > 0:
            self._stops = np.pad(self._stops, ((0, 0), (0, missing)), constant_values=-1)
        self._stops[slot] = -1
        self._stops[slot, : len(sampling.stop_ids)] = sampling.stop_ids

    def _step(self) -> None:
        """Computes what every active session hasn't computed yet, and samples one token for each."""
        slots = np.fromiter(self._active, dtype=np.int64, count=len(self._active))
        slots = slots[np.lexsort((slots, self._length[slots] - self._cached[slots] > 1))]
        for rows in self._decoder.prepare(Rows(slots, self._cached[slots], self._length[slots])):
            self._compute(rows)

    def _compute(self, rows: Rows) -> None:
        slots = rows.slots
        token_slots, positions = rows.flat()
        logits, experts = self._decoder.step(self._tokens[token_slots, positions], rows)
        self._routing[token_slots, positions] = experts.numpy()
        read = np.arange(len(logits)).clip(max=len(slots) - 1)  # logits that mean nothing are sampled from like the last ones
        of, ends = slots[read], rows.ends[read]
        logits = cut(logits, self._temperature[of], self._top_p[of], self._top_k[of])
        forced = self._forced[slots, rows.ends]
        ids, logprobs = sample(logits, self._temperature[of], uniforms(self._seed[of], ends), forced[read])
        sampled = ids.numpy()[: len(slots)]
        self._tokens[slots, rows.ends], self._logprobs[slots, rows.ends] = sampled, logprobs.numpy()[: len(slots)]
        self._cached[slots], self._length[slots] = rows.ends, rows.ends + 1
        stopped, full = (self._stops[slots] == sampled[:, None]).any(1), rows.ends + 1 >= self._limit[slots]
        for row in np.flatnonzero(full | (stopped & (forced < 0))):
            self._complete(self._active[int(slots[row])], "stop" if stopped[row] else "length")

    def _complete(self, request: _Request, reason: FinishReason) -> None:
        prompt = len(request.prompt)
        if request in self._waiting:
            self._waiting.remove(request)
            empty = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32), self._routing[0, :0].copy()
            completion = Completion(*empty, prompt - 1, reason, self.version, cached_tokens=prompt - 1)
        else:
            slot = self._slot_of[request.session]
            end = int(self._length[slot])
            completion = Completion(
                ids=self._tokens[slot, prompt:end].astype(np.int32),
                logprobs=self._logprobs[slot, prompt:end].copy(),
                routing=self._routing[slot, request.start : end - 1].copy(),
                routing_start=request.start,
                finish_reason=reason,
                version=self.version,
                cached_tokens=request.start,
            )
            self._vacate(slot)
        if not request.result.done():
            request.result.set_result(completion)

    def _forget(self, request: _Request) -> None:
        """Of a cancelled request, nothing stays: no completion returned its rows."""
        if request in self._waiting:
            self._waiting.remove(request)
            return
        slot = self._slot_of.get(request.session)
        if slot is not None and self._active.get(slot) is request:
            self._cached[slot] = request.start
            self._vacate(slot)

    def _vacate(self, slot: int) -> None:
        del self._active[slot]
        if not self._active:
            for quiet in self._pausing:
                if not quiet.done():
                    quiet.set_result(None)
            self._pausing.clear()

    def _fail(self, reason: str, cause: Exception | None = None) -> None:
        self._failure = self._failure or reason
        for request in (*self._waiting, *self._active.values()):
            if not request.result.done():
                error = EngineError(reason)
                error.__cause__ = cause
                request.result.set_exception(error)
        self._waiting.clear()
        for slot in list(self._active):
            self._vacate(slot)
        if self._driver is not None and self._driver is not asyncio.current_task():
            self._driver.cancel()

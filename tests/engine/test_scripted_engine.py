import asyncio
from dataclasses import replace

import numpy as np
import pytest

from t1x.engine.protocol import Decoding, EngineError, Sampling
from t1x.engine.scripted import ScriptedEngine

SAMPLING = Sampling(Decoding(1.0), 4, (0,), 0)


def test_plays_back_turn_by_turn() -> None:
    async def main() -> None:
        engine = ScriptedEngine({"a": [np.array([5, 6, 0], np.int32), np.array([1, 2, 3, 4, 5, 0], np.int32)], "b": []})
        prompt = np.array([9, 9], np.int32)
        first = await engine.generate(prompt, SAMPLING, "a")
        assert (first.ids.tolist(), first.logprobs.tolist(), first.finish_reason) == ([5, 6, 0], [0, 0, 0], "stop")
        assert (first.routing.shape, first.routing_start, first.version) == ((4, 0, 0), 0, 0)
        second = await engine.generate(prompt, SAMPLING, "a")
        assert (second.ids.tolist(), second.finish_reason) == ([1, 2, 3, 4], "length")
        for session in "ab":
            with pytest.raises(EngineError, match=f"session {session}: its script has no further completion"):
                await engine.generate(prompt, SAMPLING, session)
        await engine.release("a")
        with pytest.raises(ValueError, match="session a has no script"):
            await engine.generate(prompt, SAMPLING, "a")
        with pytest.raises(ValueError, match="prompt is empty"):
            await engine.generate(prompt[:0], SAMPLING, "b")

    asyncio.run(main())


def test_forced_ids_leave_the_script_as_it_was() -> None:
    async def main() -> None:
        engine = ScriptedEngine({"a": [np.array([5, 6, 0], np.int32)]})
        prompt, ids = np.array([9, 9], np.int32), np.array([7, 8], np.int32)
        forced = await engine.generate(prompt, replace(SAMPLING, forced_ids=ids), "a")
        assert (forced.ids.tolist(), forced.finish_reason, forced.routing.shape) == ([7, 8], "length", (3, 0, 0))
        stopped = await engine.generate(prompt, replace(SAMPLING, forced_ids=np.array([7, 0], np.int32)), "a")
        assert (stopped.ids.tolist(), stopped.finish_reason) == ([7, 0], "stop")
        assert (await engine.generate(prompt, SAMPLING, "a")).ids.tolist() == [5, 6, 0]
        for bad in (ids[:0], np.arange(5, dtype=np.int32)):
            with pytest.raises(ValueError, match=f"session a: {len(bad)} forced ids, but max_tokens is 4"):
                await engine.generate(prompt, replace(SAMPLING, forced_ids=bad), "a")

    asyncio.run(main())

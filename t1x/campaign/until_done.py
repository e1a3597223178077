"""Waiting for asynchronous work from ordinary code, wherever that runs."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def until_done(work: Coroutine[Any, Any, Result]) -> Result:
    """What `asyncio.run` gives. Where this thread runs a loop already, as a notebook's does, a thread of its own does the work, and
    Ctrl-C here ends it in order before it is raised."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Result]]] = []

    async def cancellable() -> Result:
        task = asyncio.ensure_future(work)
        running.append((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(asyncio.run, cancellable())
        try:
            return future.result()
        except KeyboardInterrupt:
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)
            raise

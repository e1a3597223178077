"""An event loop whose clock jumps to the next timer whenever nothing is left to do."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Doesn't wait: what it would have waited is added to `now`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits for something that never comes"
        self.now += timeout
        return super().select(0)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time, from 0 on."""
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()

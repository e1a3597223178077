"""Waiting for asynchronous work: from a script, and from within a loop that runs already."""

import asyncio
import signal
import threading
import time

import pytest

from t1x.campaign.until_done import until_done


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


async def mistake() -> None:
    raise ValueError("no")


async def inside(work) -> object:
    return until_done(work)


def test_it_gives_the_result_with_and_without_a_running_loop() -> None:
    assert until_done(answer()) == 42
    assert asyncio.run(inside(answer())) == 42


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        until_done(mistake())
    with pytest.raises(ValueError, match="no"):
        asyncio.run(inside(mistake()))


def test_an_interruption_within_a_loop_ends_the_work_in_order() -> None:
    events = []

    async def long() -> None:
        events.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            events.append("closed")

    def interrupt() -> None:
        while not events:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    async def notebook() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook's kernel has it, in place of the loop's own
        threading.Thread(target=interrupt).start()
        until_done(long())

    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(notebook())
    finally:
        signal.signal(signal.SIGINT, before)
    assert events == ["begun", "closed"]

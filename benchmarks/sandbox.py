"""What a bubblewrap sandbox costs, against `subprocess.run(["bash", "-c", ...])` in a temp folder, which isolates nothing.

    python benchmarks/sandbox.py [TRIALS]

A trial: create, 3 commands, stop, a fresh process (as a verifier is), destroy; 1 and 64 at once. The plain one: a folder, 4
subprocesses (3 commands and the verifier), the folder removed. CPU time is that of this process and of all it started, so it
depends little on who else uses the machine; the two kinds are run in turn, and the ratios are medians over rounds.

Then 256 sandboxes that live at once: made two at a time, a command in each of them in turn, destroyed two at a time, beside as many
plain subprocesses. Percentiles are of wall clock: who else uses the machine shows in them.
"""

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from t1x.sandbox.leases import Leases
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.task import Task, TaskFile

COMMANDS = ("ls -la", "sort in.txt >out.txt", "cat out.txt")
FRESH = "test -f out.txt"
TASK = Task("bench", "", (TaskFile("in.txt", b"b\na\n"),), (), ())
AT_ONCE = (1, 64)
ROUNDS = 5
CROWD, HANDS = 256, 2
"""Sandboxes that live at once, and how many are made at a time."""


def cpu_ms() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return 1000 * sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Walls:
    """Wall-clock milliseconds by operation."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def time(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.taken[operation].append(1000 * (time.perf_counter() - began))


async def sandboxed(host: Leases, walls: Walls) -> None:
    with walls.time("create"):
        lease = await host.create(TASK)
    for command in COMMANDS:
        with walls.time("exec"):
            result = await lease.exec(command, 60)
        assert result.exit_code == 0, result
    with walls.time("stop"):
        await lease.stop()
    with walls.time("run_fresh"):
        result = await lease.run_fresh(("/bin/bash", "-c", FRESH), read_only={}, writable={}, timeout=60)
    assert result.exit_code == 0, result
    with walls.time("destroy"):
        await lease.destroy()


def plain() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file in TASK.environment:
            with open(os.path.join(folder, file.path), "wb") as target:
                target.write(file.content)
        for command in (*COMMANDS, FRESH):
            subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, check=True)


async def measure(host: Leases, trials: int, at_once: int) -> tuple[Walls, float, float, float]:
    """(wall clock by operation, CPU and wall milliseconds of a sandboxed trial, CPU milliseconds of a plain one)."""
    walls = Walls()
    sandboxed_cpu, sandboxed_wall, plain_cpu = [], [], []
    for _ in range(ROUNDS):
        began, clock = cpu_ms(), time.perf_counter()
        for _ in range(max(1, trials // at_once)):
            await asyncio.gather(*(sandboxed(host, walls) for _ in range(at_once)))
        done = max(1, trials // at_once) * at_once
        sandboxed_cpu.append((cpu_ms() - began) / done)
        sandboxed_wall.append(1000 * (time.perf_counter() - clock) / done)
        began = cpu_ms()
        for _ in range(trials):
            plain()
        plain_cpu.append((cpu_ms() - began) / trials)
    return walls, *(statistics.median(values) for values in (sandboxed_cpu, sandboxed_wall, plain_cpu))


def plain_command() -> None:
    subprocess.run(["bash", "-c", "echo"], capture_output=True, check=True)


async def crowd() -> None:
    """Many living sandboxes: what one more command costs, and what making and removing them does."""
    walls = Walls()
    host = BubblewrapSandbox(create_concurrency=HANDS).build()
    try:
        began = time.perf_counter()
        with host.counting() as counts:
            leases = await asyncio.gather(*(host.create(TASK) for _ in range(CROWD)))
            rate = CROWD / (time.perf_counter() - began)
            for lease in leases:
                with walls.time("exec"):
                    await lease.exec("echo", 60)
                with walls.time("plain"):
                    plain_command()
            waiting = iter(leases)

            async def destroy() -> None:
                for lease in waiting:
                    await lease.destroy()

            await asyncio.gather(*(destroy() for _ in range(HANDS)))
    finally:
        await host.close()
    for name, seconds in (("create", counts.created), ("destroy", counts.destroyed)):
        walls.taken[name] = [1000 * each for each in seconds]
    assert counts.most == CROWD
    print(f"\n{CROWD} alive at once")
    show(walls)
    ratio = statistics.median(walls.taken["exec"]) / statistics.median(walls.taken["plain"])
    print(f"  {rate:.0f} created a second; ratio of a command / a plain subprocess, wall: {ratio:.2f}")


def show(walls: Walls) -> None:
    print(f"  {'wall, ms':10} {'p50':>8} {'p95':>8} {'p99':>8}")
    for operation, taken in walls.taken.items():
        percentiles = statistics.quantiles(taken, n=100, method="inclusive")
        print(f"  {operation:10} {percentiles[49]:8.2f} {percentiles[94]:8.2f} {percentiles[98]:8.2f}")


async def main(trials: int) -> None:
    host = BubblewrapSandbox().build()
    try:
        await sandboxed(host, Walls())
        for at_once in AT_ONCE:
            walls, cpu, wall, plain_cpu = await measure(host, trials, at_once)
            print(f"\n{at_once} at once, {ROUNDS} rounds of {trials} trials")
            show(walls)
            print(f"  CPU a trial: sandboxed {cpu:.2f} ms, plain {plain_cpu:.2f} ms; {1000 / wall:.0f} sandboxed trials a second")
            print(f"  ratio sandboxed / plain, CPU: {cpu / plain_cpu:.2f}")
    finally:
        await host.close()
    await crowd()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 64))
